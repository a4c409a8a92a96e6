// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package blob

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"pleach/internal/fault"
)

// Retry says how long a [Remote] tries. Zero fields have the defaults.
//
// The pause before try k is drawn evenly from [½, 1) · min(Most, First · 2^k), so
// that many processes do not come back together; a longer one that the store
// asks for is kept. Progress resets k: a try that brought at least a mebibyte.
type Retry struct {
	Attempts int           // tries in a row that fail without progress; 8
	First    time.Duration // 200 ms
	Most     time.Duration // 20 s

	// A try ends when nothing has come for Stall, or when it takes longer than
	// Stall + bytes/Rate. All tries of n bytes, with their pauses, take at most
	// Total + n/Rate.
	Stall time.Duration // 30 s
	Rate  int64         // bytes per second; 64 KiB
	Total time.Duration // 10 min
}

func (r Retry) withDefaults() Retry {
	set(&r.Attempts, 8)
	set(&r.First, 200*time.Millisecond)
	set(&r.Most, 20*time.Second)
	set(&r.Stall, 30*time.Second)
	set(&r.Rate, 64<<10)
	set(&r.Total, 10*time.Minute)
	return r
}

func set[T comparable](v *T, usual T) {
	var zero T
	if *v == zero {
		*v = usual
	}
}

// transfer is how long n bytes may take at the slowest rate that is borne.
func (r Retry) transfer(n int64) time.Duration {
	return time.Duration(float64(n) / float64(r.Rate) * float64(time.Second))
}

// tries counts the tries of one thing.
type tries struct {
	Retry
	end    time.Time
	failed int // in a row
}

func (r Retry) begin(n int64) *tries {
	return &tries{Retry: r, end: time.Now().Add(r.Total + r.transfer(n))}
}

// pause is how long to wait after a failure, or false if that was the last try.
func (t *tries) pause(f *failure, got int64) (time.Duration, bool) {
	if got >= 1<<20 {
		t.failed = 0
	}
	t.failed++
	d := t.Most
	if k := t.failed - 1; k < 30 {
		d = min(d, t.First<<k)
	}
	d = max(d/2+time.Duration(rand.Int64N(int64(d/2)+1)), f.after)
	return d, t.failed < t.Attempts && time.Now().Add(d).Before(t.end)
}

// failure is why one try failed.
type failure struct {
	err    error
	reason string        // of trying again; empty: that is of no use
	after  time.Duration // the store asked to wait so long
	kind   error         // whom it is for, if it is the last word
	hint   string        // stands before err, if not empty
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// errMissing is in the chain of errors about an object that is not there.
var errMissing = errors.New("it does not exist")

// errChanged is in the chain of errors about an object that is another one now.
var errChanged = errors.New("it changed since it was listed")

// asFailure judges the error of a try. tried is the context of that try.
func asFailure(tried context.Context, err error) *failure {
	var f *failure
	if errors.As(err, &f) {
		return f
	}
	if tried.Err() != nil {
		return &failure{err: errSlow, reason: Timeout}
	}
	return offLine(err)
}

var errSlow = errors.New("no answer in time")

// offLine judges an error of the network, or of what stands before it.
func offLine(err error) *failure {
	var dns *net.DNSError
	var cert *tls.CertificateVerificationError
	var nerr net.Error
	var uerr *url.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return &failure{err: errSlow, reason: Timeout}
	case errors.As(err, &dns) && dns.IsNotFound:
		return &failure{err: dns, kind: fault.Config}
	case errors.As(err, &cert):
		return &failure{err: cert, kind: fault.Config}
	case errors.Is(err, io.ErrUnexpectedEOF):
		return &failure{err: err, reason: Truncated, kind: fault.Machine}
	case errors.As(err, &nerr) && nerr.Timeout():
		return &failure{err: err, reason: Timeout, kind: fault.Machine}
	case errors.As(err, &uerr) && strings.Contains(uerr.Err.Error(), "unsupported protocol"):
		return &failure{err: err, kind: fault.Config}
	case errors.As(err, &uerr), errors.As(err, &nerr), errors.Is(err, io.EOF):
		return &failure{err: err, reason: Connection, kind: fault.Machine}
	}
	// What has neither a status nor a connection was not sent: no credentials, a
	// wrong option.
	return &failure{err: err, kind: fault.Config}
}

// answered judges a status of HTTP.
func answered(status int, h http.Header, err error) *failure {
	f := &failure{err: err, kind: fault.Config, after: wait(h)}
	switch {
	case status == http.StatusTooManyRequests:
		f.reason, f.kind = Busy, fault.Machine
	case status == http.StatusRequestTimeout, status >= 500 && status != http.StatusNotImplemented:
		f.reason, f.kind = Failing, fault.Machine
	case status == http.StatusUnauthorized:
		f.hint = "not logged in, or no permission"
	case status == http.StatusForbidden:
		f.hint = "no permission"
	case status == http.StatusNotFound:
		f.err = fmt.Errorf("%w: %w", errMissing, err)
	case status == http.StatusPreconditionFailed, status == http.StatusRequestedRangeNotSatisfiable:
		f.err, f.kind = fmt.Errorf("%w: %w", errChanged, err), fault.Data
	}
	return f
}

// wait is how long a store asks to wait: Retry-After in seconds or as a date
// (RFC 9110, 10.2.3), or t of RateLimit in seconds, which the hub sends.
func wait(h http.Header) time.Duration {
	v := h.Get("Retry-After")
	if v == "" {
		_, t, ok := strings.Cut(h.Get("RateLimit"), "t=")
		if !ok {
			return 0
		}
		v, _, _ = strings.Cut(t, ";")
	}
	if s, err := strconv.Atoi(strings.TrimSpace(v)); err == nil {
		return max(0, time.Duration(s)*time.Second)
	}
	if t, err := http.ParseTime(v); err == nil {
		return max(0, time.Until(t))
	}
	return 0
}

// again calls f until it succeeds or trying is of no use any more.
func (r *Remote) again(ctx context.Context, doing, what string, f func(context.Context) error) error {
	t := r.opt.Retry.begin(0)
	for {
		tried, cancel := context.WithTimeout(ctx, t.Stall)
		r.stats.count(func(s *Stats) { s.Requests++ })
		err := f(tried)
		if err == nil {
			cancel()
			return nil
		}
		why := asFailure(tried, err)
		cancel()
		if err := r.next(ctx, t, why, 0); err != nil {
			return told(doing, what, t, err)
		}
	}
}

// next waits before another try. It returns why there is none.
func (r *Remote) next(ctx context.Context, t *tries, why *failure, got int64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	d, more := t.pause(why, got)
	if why.reason == "" || !more {
		return why
	}
	r.stats.count(func(s *Stats) { s.Retries[why.reason]++ })
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// told is the error that a caller sees.
func told(doing, what string, t *tries, err error) error {
	var f *failure
	if !errors.As(err, &f) {
		return fault.Machinef("blob: %s %s: %w", doing, what, err) // cancelled
	}
	err = fmt.Errorf("blob: %s %s: %w", doing, what, f.err)
	switch {
	case f.hint != "":
		err = fmt.Errorf("blob: %s %s: %s: %w", doing, what, f.hint, f.err)
	case f.reason != "":
		err = fmt.Errorf("blob: %s %s: given up, %d tries in a row failed: %w", doing, what, t.failed, f.err)
	}
	if f.kind == nil {
		return fault.As(fault.Machine, err)
	}
	return fault.As(f.kind, err)
}

// stream writes n bytes of an object from off on to w. After a failure it goes
// on from where it stopped.
func (r *Remote) stream(ctx context.Context, o Object, off, n int64, w io.Writer) error {
	t := r.opt.Retry.begin(n)
	for n > 0 {
		got, err := r.try(ctx, o, off, n, w)
		off, n = off+got, n-got
		if n == 0 {
			return nil
		}
		var bad *writeError
		if errors.As(err, &bad) {
			return bad.err
		}
		var f *failure
		errors.As(err, &f)
		if err := r.next(ctx, t, f, got); err != nil {
			if errors.Is(f, errMissing) {
				f.kind = fault.Data // it was there when it was listed
			}
			return told("reading", o.URL, t, err)
		}
	}
	return nil
}

// try reads up to n bytes with one request. Its error is a *failure or a
// *writeError.
func (r *Remote) try(ctx context.Context, o Object, off, n int64, w io.Writer) (got int64, err error) {
	p := r.opt.Retry
	tried, cancel := context.WithTimeout(ctx, p.Stall+p.transfer(n))
	defer cancel()
	stall := time.AfterFunc(p.Stall, cancel)
	defer stall.Stop()
	defer func() {
		r.stats.count(func(s *Stats) { s.Requests++; s.Bytes += got })
	}()
	body, err := o.src.read(tried, o, off, n)
	if err != nil {
		return 0, asFailure(tried, err)
	}
	defer body.Close()
	buf := make([]byte, min(n, 128<<10))
	for got < n {
		k, err := body.Read(buf[:min(int64(len(buf)), n-got)])
		stall.Reset(p.Stall)
		if k > 0 {
			if _, err := w.Write(buf[:k]); err != nil {
				return got, &writeError{err}
			}
			got += int64(k)
		}
		switch {
		case got == n:
			return got, nil
		case err == io.EOF:
			return got, &failure{err: fmt.Errorf("got %d of %d bytes: %w", got, n, io.ErrUnexpectedEOF), reason: Truncated}
		case err != nil:
			return got, inBody(tried, err)
		}
	}
	return got, nil
}

// inBody judges an error behind a good status: whatever it is, the rest may be
// asked for again.
func inBody(tried context.Context, err error) *failure {
	f := asFailure(tried, err)
	if f.reason == "" && !errors.Is(f, errChanged) {
		f.reason, f.kind = Connection, fault.Machine
	}
	return f
}

// writeError is of the one who is written to, not of the store.
type writeError struct{ err error }

func (e *writeError) Error() string { return e.err.Error() }
