// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package blob_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"pleach/blob"
	"pleach/blob/blobtest"
	"pleach/internal/fault"
)

func TestStores(t *testing.T) {
	t.Run("os", func(t *testing.T) {
		blobtest.Run(t, func(t *testing.T) blob.Store { return blob.Local(filepath.Join(t.TempDir(), "new")) })
	})
	t.Run("mem", func(t *testing.T) {
		blobtest.Run(t, func(t *testing.T) blob.Store { return mem(blobtest.NewMem()) })
	})
}

func mem(f blob.Files) *blob.Dir { return &blob.Dir{Files: f, Root: "/root"} }

func text(s string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, s)
		return err
	}
}

// history writes a file twice and publishes a folder.
func history(s blob.Store, done func(n int)) error {
	for i, f := range []func() error{
		func() error { return s.Write("d/f", text("old")) },
		func() error { return s.Write("d/f", text("newer")) },
		func() error {
			return s.Publish("d/p", func(t blob.Tree) error {
				if err := t.Write("a", text("1")); err != nil {
					return err
				}
				return t.Write("sub/b", text("22"))
			})
		},
		func() error { return s.Remove("d/f") },
	} {
		if err := f(); err != nil {
			return err
		}
		done(i + 1)
	}
	return nil
}

// view says in which state of the history a store is: the number of steps done,
// or an error when it is in none.
func view(s blob.Store) (int, error) {
	f, ferr := blob.ReadFile(s, "d/f", 100)
	a, aerr := blob.ReadFile(s, "d/p/a", 100)
	b, berr := blob.ReadFile(s, "d/p/sub/b", 100)
	got := fmt.Sprintf("%q %v %q %v %q %v", f, ferr != nil, a, aerr != nil, b, berr != nil)
	for i, w := range []string{
		`"" true "" true "" true`,
		`"old" false "" true "" true`,
		`"newer" false "" true "" true`,
		`"newer" false "1" false "22" false`,
		`"" true "1" false "22" false`,
	} {
		if got == w {
			return i, nil
		}
	}
	return 0, errors.New("a third state: " + got)
}

// TestCrash crashes at every operation of a history, in three ways each. What
// was reported done must be there, and nothing is in a state between.
func TestCrash(t *testing.T) {
	all := &blobtest.Faulty{Files: blobtest.NewMem()}
	if err := history(mem(all), func(int) {}); err != nil {
		t.Fatal(err)
	}
	if all.Count() < 30 {
		t.Fatalf("only %d operations", all.Count())
	}
	for n := 1; n <= all.Count(); n++ {
		m := blobtest.NewMem()
		f := &blobtest.Faulty{Files: m, Rule: blobtest.Rule{Nth: n, Crash: true}}
		reported := 0
		err := history(mem(f), func(i int) { reported = i })
		if !errors.Is(err, blobtest.ErrCrash) {
			t.Fatalf("operation %d: the error is lost: %v", n, err)
		}
		for seed := range uint64(12) {
			loss := min(blobtest.Loss(seed), blobtest.Torn)
			s := mem(m.After(loss, seed))
			got, err := view(s)
			if err != nil || got < reported || got > reported+1 {
				t.Errorf("operation %d, loss %d, seed %d: state %d, %v; %d were reported", n, loss, seed,
					got, err, reported)
			}
			if err := s.Sweep("d"); err != nil {
				t.Error(err)
			}
			if again, err := view(s); err != nil || again != got {
				t.Errorf("operation %d: sweeping changed state %d to %d, %v", n, got, again, err)
			}
		}
	}
}

func TestFullDisk(t *testing.T) {
	for _, c := range []struct {
		op   blobtest.Op
		path string
		want string
	}{
		{blobtest.Write, "*f", "blob: writing /root/d/f: the disk is full: no space left on device"},
		{blobtest.Create, "a", "blob: creating /root/d/p/a: the disk is full: no space left on device"},
		{blobtest.Sync, "b", "blob: flushing /root/d/p/sub/b: the disk is full: no space left on device"},
		{blobtest.Mkdir, "sub", "blob: making folder /root/d/p/sub: the disk is full: no space left on device"},
	} {
		m := blobtest.NewMem()
		f := &blobtest.Faulty{Files: m, Rule: blobtest.Rule{
			Ops: c.op, Path: c.path, Nth: 1, Always: true, Err: syscall.ENOSPC,
		}}
		reported := 0
		err := history(mem(f), func(i int) { reported = i })
		if err == nil || err.Error() != c.want || !errors.Is(err, fault.Machine) || !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("got  %v\nwant %s, of kind machine", err, c.want)
		}
		if got, err := view(mem(m)); got != reported || err != nil {
			t.Errorf("%s: state %d, %v, want %d", c.want, got, err, reported)
		}
		es, _ := m.ReadDir("/root/d")
		for _, e := range es {
			if strings.HasPrefix(e.Name, ".") {
				t.Errorf("%s is left over", e.Name)
			}
		}
	}
}

func TestRemoveKeepsWhatLinksPointTo(t *testing.T) {
	dir := t.TempDir()
	s := blob.Local(filepath.Join(dir, "s"))
	out := blob.Local(filepath.Join(dir, "out"))
	for _, s := range []*blob.Dir{s, out} {
		if err := s.Write("d/f", text("x")); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(out.Path("d"), s.Path("d/link")); err != nil {
		t.Skip("no links here:", err)
	}
	if es, err := s.List("d"); err != nil || len(es) != 2 || !es[1].Dir {
		t.Errorf("got %v, %v, want a file and a folder", es, err)
	}
	if err := s.Remove("d"); err != nil {
		t.Fatal(err)
	}
	if _, err := blob.ReadFile(out, "d/f", 9); err != nil {
		t.Errorf("the target of a link was removed: %v", err)
	}
}

func TestFree(t *testing.T) {
	n, err := blob.Local(filepath.Join(t.TempDir(), "not", "yet", "there")).Free()
	if err != nil || n == 0 {
		t.Errorf("got %d, %v", n, err)
	}
}

func ExampleLocal() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	s := blob.Local(dir)
	err = s.Publish("model", func(t blob.Tree) error {
		return t.Write("config.json", func(w io.Writer) error {
			_, err := io.WriteString(w, "{}")
			return err
		})
	})
	b, _ := blob.ReadFile(s, "model/config.json", 1<<20)
	fmt.Printf("%s %v\n", b, err)
	// Output: {} <nil>
}
