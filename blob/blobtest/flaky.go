// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package blobtest

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"time"
)

// Flaky is a server that fails now and then. What happens to a request is a
// function of Seed, of its method, URL and range, and of how often it was made
// before: not of the order in which several are made.
type Flaky struct {
	http.Handler
	Seed uint64

	// Shares of the answers, together at most 1.
	Fail     float64 // status 503
	Busy     float64 // status 429, with Retry-After: 0
	Reset    float64 // the connection is reset
	Truncate float64 // half of the body, then the connection is closed
	Slow     float64 // the right answer, after Delay

	Delay time.Duration

	mu     sync.Mutex
	made   map[string]uint64
	counts map[string]int
}

// Counts says how many answers were bad, by what was done to them, and how many
// there were: "all".
func (f *Flaky) Counts() map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := map[string]int{}
	for k, n := range f.counts {
		c[k] = n
	}
	return c
}

// fate draws what happens to a request.
func (f *Flaky) fate(q *http.Request) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.made == nil {
		f.made, f.counts = map[string]uint64{}, map[string]int{}
	}
	id := fmt.Sprint(q.Method, q.URL, q.Header.Get("Range"))
	h := fnv.New64a()
	h.Write([]byte(id))
	x := rand.New(rand.NewPCG(f.Seed^h.Sum64(), f.made[id])).Float64()
	f.made[id]++
	f.counts["all"]++
	for _, c := range []struct {
		name  string
		share float64
	}{{"fail", f.Fail}, {"busy", f.Busy}, {"reset", f.Reset}, {"truncate", f.Truncate}, {"slow", f.Slow}} {
		if x -= c.share; x < 0 {
			f.counts[c.name]++
			return c.name
		}
	}
	return ""
}

// ServeHTTP answers, well or badly.
func (f *Flaky) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	switch f.fate(q) {
	case "fail":
		http.Error(w, "", http.StatusServiceUnavailable)
		return
	case "busy":
		w.Header().Set("Retry-After", "0")
		http.Error(w, "", http.StatusTooManyRequests)
		return
	case "reset":
		reset(w)
		return
	case "truncate":
		f.Handler.ServeHTTP(&half{ResponseWriter: w}, q)
		panic(http.ErrAbortHandler) // closes the connection
	case "slow":
		select {
		case <-time.After(f.Delay):
		case <-q.Context().Done():
			return
		}
	}
	f.Handler.ServeHTTP(w, q)
}

// reset ends a connection so that its other end sees it as reset.
func reset(w http.ResponseWriter) {
	c, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if t, ok := c.(*net.TCPConn); ok {
		_ = t.SetLinger(0)
	}
	_ = c.Close()
}

// half lets through half of each write.
type half struct {
	http.ResponseWriter
	cut bool
}

func (h *half) Write(b []byte) (int, error) {
	if h.cut {
		return len(b), nil
	}
	h.cut = true
	_, err := h.ResponseWriter.Write(b[:len(b)/2])
	if fl, ok := h.ResponseWriter.(http.Flusher); ok {
		fl.Flush()
	}
	return len(b), err
}
