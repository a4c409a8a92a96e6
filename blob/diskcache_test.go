// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package blob

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

func testID(i int) chunkID { return chunkID{[16]byte{1, 2, 3}, int64(i)} }

// testData is what the chunk i holds in these tests.
func testData(i, size int) []byte {
	b := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{byte(i), byte(i >> 8)}).Read(b)
	return b
}

// folderSize is the bytes of all files of a cache but the lock.
func folderSize(t *testing.T, dir string) (n int64) {
	t.Helper()
	es, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range es {
		if info, err := e.Info(); err == nil && e.Name() != ".lock" {
			n += info.Size()
		}
	}
	return n
}

func newCache(t testing.TB, dir string, limit int64) *diskCache {
	return &diskCache{dir: dir, limit: limit, warn: func(s string) { t.Error("warned:", s) }}
}

// TestDamage: whatever is done to a chunk on disk, its bytes are not believed.
func TestDamage(t *testing.T) {
	want := testData(1, 1000)
	for name, damage := range map[string]func(b []byte) []byte{
		"empty":  func([]byte) []byte { return nil },
		"short":  func(b []byte) []byte { return b[:len(b)-1] },
		"header": func(b []byte) []byte { return b[:10] },
		"long":   func(b []byte) []byte { return append(b, 0) },
		"bit":    func(b []byte) []byte { b[500] ^= 4; return b },
		"zeros":  func(b []byte) []byte { clear(b[20:]); return b },
		"magic":  func(b []byte) []byte { b[0]++; return b },
		"length": func(b []byte) []byte { b[9]++; return b },
		"sum":    func(b []byte) []byte { b[17]++; return b },
	} {
		dir := t.TempDir()
		c := newCache(t, dir, 1e6)
		c.store(testID(1), want)
		got := make([]byte, 1000)
		if c = newCache(t, dir, 1e6); !c.load(testID(1), got) || !bytes.Equal(got, want) {
			t.Fatal("the chunk is not there")
		}
		p := c.path(testID(1))
		b, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, damage(b), 0o600); err != nil {
			t.Fatal(err)
		}
		if c = newCache(t, dir, 1e6); c.load(testID(1), got) {
			t.Errorf("%s: a damaged chunk was believed", name)
		}
		c.store(testID(1), want)
		if c = newCache(t, dir, 1e6); !c.load(testID(1), got) || !bytes.Equal(got, want) {
			t.Errorf("%s: a damaged chunk was not replaced", name)
		}
	}
	// One under the name of another.
	c := newCache(t, t.TempDir(), 1e6)
	c.store(testID(1), want)
	if err := os.Rename(c.path(testID(1)), c.path(testID(2))); err != nil {
		t.Fatal(err)
	}
	if c.load(testID(2), make([]byte, 1000)) {
		t.Error("a chunk was believed under the name of another")
	}
}

// TestLimit: the folder never holds more than its limit, and what was used last
// stays longest.
func TestLimit(t *testing.T) {
	const limit = 10 * (1000 + chunkHeader)
	dir := t.TempDir()
	c := newCache(t, dir, limit)
	old := time.Now().Add(-time.Hour)
	for i := range 50 {
		c.store(testID(i), testData(i, 1000))
		if n := folderSize(t, dir); n > limit {
			t.Fatalf("after %d chunks: got %d bytes, want at most %d", i+1, n, limit)
		}
		at := old.Add(time.Duration(i) * time.Second)
		if err := os.Chtimes(c.path(testID(i)), at, at); err != nil {
			t.Fatal(err)
		}
		// The first one is read now and then.
		if got := make([]byte, 1000); !newCache(t, dir, limit).load(testID(0), got) || !bytes.Equal(got, testData(0, 1000)) {
			t.Fatalf("after %d chunks: the one that is used was removed", i+1)
		}
	}
	if n := folderSize(t, dir); n < limit*8/10 {
		t.Errorf("only %d bytes are left of a limit of %d", n, limit)
	}
	if newCache(t, dir, limit).load(testID(1), make([]byte, 1000)) {
		t.Error("the chunk used longest ago is still there")
	}
	c.store(testID(99), make([]byte, limit)) // more than there may be at all
	if n := folderSize(t, dir); n > limit {
		t.Errorf("got %d bytes, want at most %d", n, limit)
	}
	// What was checked and then removed by another process is not there any more.
	if err := os.Remove(c.path(testID(0))); err != nil {
		t.Fatal(err)
	}
	if c.note(testID(0), true); c.readAt(testID(0), make([]byte, 1), 0) || c.knows(testID(0)) {
		t.Error("a chunk was read that is not there")
	}
}

// TestShared: several users of one folder keep its limit together.
func TestShared(t *testing.T) {
	const limit = 20 * 1020
	dir := t.TempDir()
	var wg sync.WaitGroup
	for g := range 4 {
		c := newCache(t, dir, limit)
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(g), 0))
			got := make([]byte, 1000)
			for range 200 {
				i := r.IntN(60)
				if !c.load(testID(i), got) {
					c.store(testID(i), testData(i, 1000))
				} else if !bytes.Equal(got, testData(i, 1000)) {
					t.Errorf("chunk %d is another", i)
				}
			}
		})
	}
	wg.Wait()
	if n := folderSize(t, dir); n > limit {
		t.Errorf("got %d bytes, want at most %d", n, limit)
	}
}

// TestNoDisk: a cache that cannot be written says so once.
func TestNoDisk(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var told []string
	c := &diskCache{dir: file, limit: 1e6, warn: func(s string) { told = append(told, s) }}
	for i := range 3 {
		c.retry = time.Time{}
		c.store(testID(i), testData(i, 10))
		if c.load(testID(i), make([]byte, 10)) {
			t.Error("it was stored")
		}
	}
	// A disk with less room than others may need.
	full := &diskCache{dir: t.TempDir(), limit: 1e6, spare: 1 << 60, warn: func(s string) { told = append(told, s) }}
	if full.store(testID(1), nil); folderSize(t, full.dir) > 0 {
		t.Error("the disk of others was used")
	}
	if len(told) != 2 || !strings.Contains(told[1], "left to others") {
		t.Errorf("got %q", told)
	}
	told = told[:1]
	if len(told) != 1 || !strings.Contains(told[0], "cannot be written") {
		t.Errorf("got %q, want one warning", told)
	}
}

// TestKilled: a process killed at any time while it writes leaves a cache that
// holds right chunks or none, within its limit.
func TestKilled(t *testing.T) {
	const limit, size = 8 * (64<<10 + chunkHeader), 64 << 10
	if dir := os.Getenv("BLOB_TEST_FILL"); dir != "" {
		c := &diskCache{dir: dir, limit: limit, warn: func(s string) { fmt.Println(s); os.Exit(9) }}
		first, _ := strconv.Atoi(os.Getenv("BLOB_TEST_FIRST"))
		for i := first; ; i++ {
			c.store(testID(i%40), testData(i%40, size))
		}
	}
	dir := t.TempDir()
	kept := 0
	for k := range 15 {
		cmd := exec.Command(os.Args[0], "-test.run=^TestKilled$")
		cmd.Env = append(os.Environ(), "BLOB_TEST_FILL="+dir, "BLOB_TEST_FIRST="+strconv.Itoa(k*7))
		var out bytes.Buffer
		cmd.Stdout = &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		started := time.Now()
		for folderSize(t, dir) == 0 && time.Since(started) < 10*time.Second {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Duration(k*1700) * time.Microsecond)
		_ = cmd.Process.Kill()
		if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() == 9 {
			t.Fatalf("the writer ended by itself: %v %s", err, out.String())
		}
		// The unfinished chunk comes on top until the next one makes room.
		if n := folderSize(t, dir); n > limit+size+chunkHeader {
			t.Errorf("got %d bytes, want at most %d and a chunk", n, limit)
		}
		c := newCache(t, dir, limit)
		got := make([]byte, size)
		for i := range 40 {
			if c.load(testID(i), got) {
				if kept++; !bytes.Equal(got, testData(i, size)) {
					t.Errorf("chunk %d is another", i)
				}
			}
		}
	}
	if kept < 15 {
		t.Errorf("only %d chunks survived 15 kills", kept)
	}
	c := newCache(t, dir, limit)
	for i := range 9 { // more than fit: the leftovers are swept
		c.store(testID(100+i), testData(i, size))
	}
	if left, _ := filepath.Glob(filepath.Join(dir, unfinished+"*")); len(left) > 0 || folderSize(t, dir) > limit {
		t.Errorf("left over: %q, %d bytes", left, folderSize(t, dir))
	}
}
