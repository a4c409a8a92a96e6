// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package blob

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"syscall"
	"testing"
	"time"

	"pleach/internal/fault"
)

func TestAnswered(t *testing.T) {
	for status, want := range map[int]struct {
		reason string
		kind   error
	}{
		400: {"", fault.Config}, 401: {"", fault.Config}, 403: {"", fault.Config}, 404: {"", fault.Config},
		408: {Failing, fault.Machine}, 412: {"", fault.Data}, 416: {"", fault.Data}, 429: {Busy, fault.Machine},
		500: {Failing, fault.Machine}, 501: {"", fault.Config}, 503: {Failing, fault.Machine}, 599: {Failing, fault.Machine},
	} {
		if f := answered(status, nil, errors.New("x")); f.reason != want.reason || f.kind != want.kind {
			t.Errorf("%d: got %q, %v, want %q, %v", status, f.reason, f.kind, want.reason, want.kind)
		}
	}
}

func TestOffLine(t *testing.T) {
	get := func(err error) error {
		return fmt.Errorf("vendor: %w", &url.Error{Op: "Get", URL: "http://h", Err: err})
	}
	op := func(err error) error { return &net.OpError{Op: "read", Err: err} }
	for _, c := range []struct {
		err    error
		reason string
	}{
		{get(op(syscall.ECONNRESET)), Connection},
		{get(op(syscall.ECONNREFUSED)), Connection},
		{get(io.EOF), Connection},
		{get(io.ErrUnexpectedEOF), Truncated},
		{fmt.Errorf("decoding: %w", io.ErrUnexpectedEOF), Truncated},
		{op(syscall.EPIPE), Connection},
		{get(context.DeadlineExceeded), Timeout},
		{get(context.Canceled), Timeout}, // the try ended, not the caller
		{get(&net.DNSError{Err: "server misbehaving", IsTemporary: true}), Connection},
		{get(&net.DNSError{Err: "timed out", IsTimeout: true}), Timeout},
		{get(&net.DNSError{Err: "no such host", IsNotFound: true}), ""},
		{get(&tls.CertificateVerificationError{Err: errors.New("unknown authority")}), ""},
		{get(errors.New("unsupported protocol scheme \"\"")), ""},
		{errors.New("no credentials"), ""},
	} {
		f := offLine(c.err)
		if f.reason != c.reason || (f.kind == fault.Config) != (c.reason == "") {
			t.Errorf("%v: got %q, %v, want %q", c.err, f.reason, f.kind, c.reason)
		}
	}
}

func TestWait(t *testing.T) {
	soon := time.Now().Add(90 * time.Second).UTC().Format(http.TimeFormat)
	for _, c := range []struct {
		name, value string
		least, most time.Duration
	}{
		{"Retry-After", "7", 7 * time.Second, 7 * time.Second},
		{"Retry-After", soon, 85 * time.Second, 91 * time.Second},
		{"Retry-After", "Mon, 02 Jan 2006 15:04:05 GMT", 0, 0},
		{"Retry-After", "-5", 0, 0},
		{"Retry-After", "soon", 0, 0},
		{"Ratelimit", `"api";r=0;t=55`, 55 * time.Second, 55 * time.Second},
		{"Ratelimit", `"api";t=55;r=0`, 55 * time.Second, 55 * time.Second},
		{"Other", "7", 0, 0},
	} {
		if d := wait(http.Header{c.name: {c.value}}); d < c.least || d > c.most {
			t.Errorf("%s: %s: got %v, want %v to %v", c.name, c.value, d, c.least, c.most)
		}
	}
}

// TestPause: pauses double from First to Most, drawn from the upper half; progress
// begins anew; attempts and time end it.
func TestPause(t *testing.T) {
	r := Retry{First: time.Second, Most: 10 * time.Second, Attempts: 6, Total: time.Hour}.withDefaults()
	tr := r.begin(0)
	for i, want := range []time.Duration{1, 2, 4, 8, 10} {
		d, more := tr.pause(&failure{}, 100)
		if want *= time.Second; d < want/2 || d > want || !more {
			t.Errorf("pause %d: got %v, %v, want %v to %v", i, d, more, want/2, want)
		}
	}
	if _, more := tr.pause(&failure{}, 0); more {
		t.Error("the sixth failure in a row is not the last")
	}
	if d, more := tr.pause(&failure{}, 1<<20); d > time.Second || !more {
		t.Errorf("after progress: got %v, %v", d, more)
	}
	if d, more := tr.pause(&failure{after: time.Minute}, 0); d != time.Minute || !more {
		t.Errorf("the store asked for a minute: got %v, %v", d, more)
	}
	if _, more := tr.pause(&failure{after: 2 * time.Hour}, 0); more {
		t.Error("it would wait longer than all tries may take")
	}
}

func FuzzPlace(f *testing.F) {
	for _, s := range []string{"s3://b/x/*.a", "hf://datasets/o/n@refs/pr/1/x", "gs://b/**/x?a=b", "s3://b/[a-"} {
		f.Add(s, "x/y.a")
	}
	f.Fuzz(func(t *testing.T, s, key string) {
		p, err := parsePlace(s)
		if err != nil {
			if !errors.Is(err, fault.Config) {
				t.Errorf("%q: %v is not of kind config", s, err)
			}
			return
		}
		if !p.match(key) {
			return
		}
		if rel := p.rel(key); rel == "" && key != "" || len(rel) > len(key) || key[len(key)-len(rel):] != rel {
			t.Errorf("%q of %q: got the name %q", s, key, rel)
		}
		if n := len(p.prefix()); len(key) < n || key[:n] != p.prefix() {
			t.Errorf("%q: %q matches, but is not listed by %q", s, key, p.prefix())
		}
	})
}
