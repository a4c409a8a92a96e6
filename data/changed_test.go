// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package data

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestChanges: what has changed is named; a corpus that has moved has not changed.
func TestChanges(t *testing.T) {
	files := map[string]string{
		"a.jsonl": jsonl(lettered(1, 40, 60)), "b.txt": "some text", "c/d.txt": "more text", "e.txt": strings.Repeat("long ", 9000),
	}
	spec := func(dir string) Spec { return specOf([]Source{{Paths: []string{dir}}}) }
	dir := write(t, files)
	was := open(t, spec(dir)).Files()
	if got := Changes(was, open(t, spec(write(t, files))).Files()); got != nil {
		t.Errorf("a copy: got %s", got)
	}
	for name, text := range map[string]string{"b.txt": "some test", "e.txt": strings.Repeat("long ", 9001), "f.txt": "new"} {
		if err := writeFile(filepath.Join(dir, name), text); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(filepath.Join(dir, "c/d.txt")); err != nil {
		t.Fatal(err)
	}
	got := strings.Join(Changes(was, open(t, spec(dir)).Files()), "; ")
	if want := "source 0: b.txt has another content; source 0: e.txt had 45000 bytes, has 45005; source 0: f.txt is new; " +
		"source 0: c/d.txt is gone"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestAcceptChanged: a state of files that have changed is refused, and, if that is
// accepted, goes on from wherever it was, with documents that are there.
func TestAcceptChanged(t *testing.T) {
	for _, whole := range []bool{false, true} {
		p := specOf(corpus(t))
		p.Whole = whole
		for k := range 40 {
			l := open(t, p)
			next(t, l, 13*k)
			s := throughJSON(t, l.State())
			q := p
			q.Sources = append([]Source(nil), p.Sources...)
			q.Sources[0].Paths = []string{write(t, map[string]string{"a.jsonl": jsonl(lettered(3, 50+k, 20))})}
			l = open(t, q)
			if err := l.Restore(s); err == nil || !strings.Contains(err.Error(), "source lines: bytes was") {
				t.Fatalf("got %v, want a refusal", err)
			}
			l.AcceptChanged()
			if err := l.Restore(s); err != nil {
				t.Fatal(err)
			}
			want := next(t, l, 40)
			again := open(t, q)
			again.AcceptChanged()
			if err := again.Restore(s); err != nil {
				t.Fatal(err)
			}
			same(t, fmt.Sprint("twice after row ", 13*k), next(t, again, 40), want)
			q.Sequence++
			other := open(t, q)
			other.AcceptChanged()
			if err := other.Restore(s); err == nil || !strings.Contains(err.Error(), "sequence was") {
				t.Fatalf("got %v, want a refusal of another sequence", err)
			}
		}
	}
}
