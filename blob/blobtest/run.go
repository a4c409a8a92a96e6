// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package blobtest

import (
	"errors"
	"io"
	"io/fs"
	"slices"
	"testing"

	"pleach/blob"
	"pleach/internal/fault"
)

// Run checks that a store keeps the contract of blob.Store. Each case gets a
// fresh, empty store.
func Run(t *testing.T, open func(t *testing.T) blob.Store) {
	for _, c := range []struct {
		name, explanation string
		f                 func(t *testing.T, s blob.Store)
	}{
		{"write", "Write makes folders on the way; reading gives the bytes back, in ranges too.", write},
		{"replace", "A Write that fails leaves the earlier bytes, and nothing else.", replace},
		{"publish", "Publish shows all files at once, and never replaces a folder.", publish},
		{"fail", "A Publish that fails shows nothing and can be tried again.", publishFails},
		{"remove", "Remove takes a whole tree; a missing name is no error.", remove},
		{"missing", "A missing name matches fs.ErrNotExist and is of kind data.", missing},
		{"names", "Names that could leave the store are refused.", badNames},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Log(c.explanation)
			c.f(t, open(t))
		})
	}
}

var errFill = errors.New("fill failed")

func text(s string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, s)
		return err
	}
}

func failing(w io.Writer) error {
	_, _ = io.WriteString(w, "part")
	return errFill
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func want(t *testing.T, s blob.Store, name, text string) {
	t.Helper()
	b, err := blob.ReadFile(s, name, 1000)
	if err != nil || string(b) != text {
		t.Errorf("reading %s: got %q, %v, want %q", name, b, err, text)
	}
}

func list(t *testing.T, s blob.Store, dir string, names ...string) {
	t.Helper()
	es, err := s.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range es {
		n := e.Name
		if e.Dir {
			n += "/"
		}
		got = append(got, n)
	}
	if !slices.Equal(got, names) {
		t.Errorf("listing %s: got %q, want %q", dir, got, names)
	}
}

func write(t *testing.T, s blob.Store) {
	ok(t, s.Write("a/b/c", text("hello, world")))
	ok(t, s.Write("a/empty", text("")))
	want(t, s, "a/b/c", "hello, world")
	want(t, s, "a/empty", "")
	list(t, s, "a", "b/", "empty")
	r, err := s.Open("a/b/c")
	ok(t, err)
	defer r.Close()
	b := make([]byte, 5)
	if n, err := r.ReadAt(b, 7); n != 5 || string(b) != "world" || r.Size() != 12 {
		t.Errorf("ReadAt: %d %q %v, size %d", n, b, err, r.Size())
	}
	if n, err := r.ReadAt(b, 10); n != 2 || err != io.EOF {
		t.Errorf("ReadAt past the end: %d, %v, want 2, EOF", n, err)
	}
	if _, err := blob.ReadFile(s, "a/b/c", 11); !errors.Is(err, fault.Data) {
		t.Errorf("ReadFile over its limit: %v", err)
	}
}

func replace(t *testing.T, s blob.Store) {
	ok(t, s.Write("f", text("old")))
	if err := s.Write("f", failing); !errors.Is(err, errFill) {
		t.Errorf("got %v, want %v", err, errFill)
	}
	want(t, s, "f", "old")
	ok(t, s.Write("f", text("new")))
	want(t, s, "f", "new")
	list(t, s, ".", "f")
}

func twoFiles(tr blob.Tree) error {
	return errors.Join(tr.Write("x", text("1")), tr.Write("sub/y", text("2")))
}

func publish(t *testing.T, s blob.Store) {
	ok(t, s.Publish("dirs/d", func(tr blob.Tree) error {
		err := twoFiles(tr)
		list(t, s, "dirs")
		return err
	}))
	want(t, s, "dirs/d/x", "1")
	want(t, s, "dirs/d/sub/y", "2")
	list(t, s, "dirs", "d/")
	if err := s.Publish("dirs/d", twoFiles); !errors.Is(err, fs.ErrExist) {
		t.Errorf("publishing twice: %v", err)
	}
}

func publishFails(t *testing.T, s blob.Store) {
	err := s.Publish("d", func(tr blob.Tree) error {
		return errors.Join(twoFiles(tr), tr.Write("z", failing))
	})
	if !errors.Is(err, errFill) {
		t.Errorf("got %v, want %v", err, errFill)
	}
	list(t, s, ".")
	ok(t, s.Publish("d", twoFiles))
	list(t, s, "d", "sub/", "x")
}

func remove(t *testing.T, s blob.Store) {
	ok(t, s.Publish("d", twoFiles))
	ok(t, s.Write("f", text("x")))
	ok(t, s.Remove("d"))
	ok(t, s.Remove("f"))
	ok(t, s.Remove("f"))
	ok(t, s.Remove("no/such"))
	list(t, s, ".")
	ok(t, s.Sweep("."))
	ok(t, s.Sweep("no"))
}

func missing(t *testing.T, s blob.Store) {
	ok(t, s.Write("d/f", text("x")))
	_, err := s.Open("d/g")
	_, err2 := s.List("e")
	for _, err := range []error{err, err2} {
		if !errors.Is(err, fs.ErrNotExist) || !errors.Is(err, fault.Data) {
			t.Errorf("got %v", err)
		}
	}
	if _, err := s.Open("d"); err == nil {
		t.Error("a folder was opened as a file")
	}
}

func badNames(t *testing.T, s blob.Store) {
	for _, n := range []string{"", "/a", "../a", "a/../../b", "a//b", "a/", `a\b`} {
		if err := s.Write(n, text("x")); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("writing %q: got %v", n, err)
		}
		if _, err := s.Open(n); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("opening %q: got %v", n, err)
		}
	}
	if err := s.Remove("."); !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("removing the store: %v", err)
	}
}
