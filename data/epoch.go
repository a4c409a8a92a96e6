// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package data

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"

	"pleach/internal/fault"
)

// An Epoch is what "1 epoch" stands for.
type Epoch struct {
	// Tokens after which the first source, at its share of the mixture, has been
	// seen once.
	Tokens       int64  `json:"tokens"`
	Source       string `json:"source"`
	SourceTokens int64  `json:"source_tokens"` // ids of the first source, with special ones
	Documents    int64  `json:"documents"`     // of the first source
	Exact        bool   `json:"exact"`         // false: estimated from a sample
}

// A source below exactBelow is counted; of another sampleParts parts of
// samplePart bytes are, evenly spaced.
const (
	exactBelow  = 1 << 30
	sampleParts = 256
	samplePart  = 1 << 20
)

// Epoch settles what an epoch of the run is. It tokenizes the first source, or a
// sample that does not depend on the seed, with all processors; Spec.Cache keeps
// the count if Spec.Tokenizer says what it is of. Failing to keep it is no error.
//
//	Tokens = SourceTokens / share of the first source
//
// For ready rows an id but the first of each row counts.
func (l *Loader) Epoch() (Epoch, error) {
	s := l.sources[0]
	share := l.stages[0].shares[0]
	if share == 0 {
		return Epoch{}, fault.Configf("data: an epoch is one of the first source, %s: "+
			"got weight 0, want more", s.Name)
	}
	var e Epoch
	name := l.cacheFile("epoch", 0)
	if !recall(name, &e) || e.SourceTokens <= 0 {
		var err error
		if e, err = l.count(exactBelow, samplePart); err != nil {
			return e, err
		}
		keep(name, e)
	}
	e.Source = s.Name
	l.mu.Lock()
	l.counted = e
	l.mu.Unlock()
	e.Tokens = int64(math.Round(float64(e.SourceTokens) / share))
	return e, nil
}

// count counts the first source, or if it has limit bytes or more estimates it
// from sampleParts parts.
func (l *Loader) count(limit, part int64) (Epoch, error) {
	s := l.sources[0]
	e := Epoch{Source: s.Name, Exact: s.size < limit}
	if s.Rows {
		n, err := s.readyRows()
		e.Documents, e.Exact = n, true
		e.SourceTokens = e.Documents * int64(l.spec.Sequence)
		return e, err
	}
	parts, step := int64(sampleParts), float64(s.size-part)/(sampleParts-1)
	if e.Exact {
		parts, step, part = (s.size+blockSize-1)/blockSize, blockSize, blockSize
	}
	sum, err := l.tally(parts, step, part)
	if err == nil && !e.Exact && sum.documents == 0 {
		// Documents are so long that none starts in the sample.
		return l.count(math.MaxInt64, part)
	}
	e.SourceTokens, e.Documents = sum.tokens, sum.documents
	if !e.Exact && err == nil {
		scale := float64(s.size) / float64(sum.bytes)
		e.SourceTokens = int64(math.Round(float64(sum.tokens) * scale))
		e.Documents = int64(math.Round(float64(sum.documents) * scale))
	}
	return e, err
}

// tallies are sums over documents; bytes are those in the files, of skipped
// documents too.
type tallies struct{ documents, tokens, bytes int64 }

// tally sums over the documents that start in parts ranges of part bytes, the
// first at 0 and each step after the one before.
func (l *Loader) tally(parts int64, step float64, part int64) (tallies, error) {
	s := l.sources[0].bare()
	defer s.close()
	var sum tallies
	var mu sync.Mutex
	err := spread(l.closing, int(parts), func() *lane { return &lane{spec: &l.spec, enc: l.enc} },
		func(n *lane, i int) error {
			lo := int64(float64(i) * step)
			t, err := n.tally(s, lo, lo+part)
			mu.Lock()
			defer mu.Unlock()
			sum.documents += t.documents
			sum.tokens += t.tokens
			sum.bytes += t.bytes
			return err
		})
	if closed := l.closed(); closed != nil {
		err = closed
	}
	return sum, err
}

// spread calls work for 0 … parts−1 with all processors, each of which has a lane
// of its own, until one fails or ctx ends, and returns why.
func spread(ctx context.Context, parts int, fresh func() *lane, work func(n *lane, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	var next atomic.Int64
	for range min(parts, runtime.GOMAXPROCS(0)) {
		wg.Go(func() {
			n := fresh()
			defer n.close()
			for i := next.Add(1) - 1; i < int64(parts) && ctx.Err() == nil; i = next.Add(1) - 1 {
				if err := work(n, int(i)); err != nil {
					cancel(err)
				}
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

// tally sums over the documents that start in [lo,hi).
func (n *lane) tally(s *source, lo, hi int64) (tallies, error) {
	var t tallies
	refs, err := s.starting(lo, min(hi, s.size))
	if err != nil {
		return t, err
	}
	for _, r := range refs {
		d, why, err := s.read(r, &n.c)
		if err != nil {
			return t, err
		}
		t.bytes += s.takes(r)
		if why != none {
			continue
		}
		n.doc = d
		if err := n.encode(d); err != nil {
			return t, err
		}
		t.documents++
		t.tokens += int64(len(n.ids))
	}
	return t, nil
}

// cacheFile names a count of a source by all that it depends on.
func (l *Loader) cacheFile(what string, source int) string {
	if l.spec.Cache == "" || l.spec.Tokenizer == "" {
		return ""
	}
	f := l.Fingerprint()
	p := f.Sources[source]
	p.Name, p.Weight, p.Epochs = "", 0, 0 // do not change the count
	key := fmt.Sprintf("1 %q %q %+v", f.Tokenizer, f.Special, p)
	if p.Rows {
		key += fmt.Sprint(f.Sequence)
	}
	h := sha256.Sum256([]byte(key))
	return filepath.Join(l.spec.Cache, what+"-"+hex.EncodeToString(h[:8])+".json")
}

// recall reads what keep has written.
func recall(name string, into any) bool {
	if name == "" {
		return false
	}
	b, err := os.ReadFile(name)
	return err == nil && json.Unmarshal(b, into) == nil
}

// keep writes a count where recall finds it: whole or not at all.
func keep(name string, count any) {
	if name == "" {
		return
	}
	dir := filepath.Dir(name)
	b, err := json.Marshal(count)
	if err != nil || os.MkdirAll(dir, 0o777) != nil {
		return
	}
	f, err := os.CreateTemp(dir, "count-*.tmp")
	if err != nil {
		return
	}
	_, err = f.Write(b)
	if f.Close() != nil || err != nil || os.Rename(f.Name(), name) != nil {
		os.Remove(f.Name())
	}
}
