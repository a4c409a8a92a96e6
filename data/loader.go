// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package data

import (
	"context"
	"errors"
	"io"
	"runtime"
	"slices"
	"sync"

	"pleach/internal/fault"
)

// An Encoder turns text into ids, without special ones, and appends them to dst.
// It is called by several goroutines at a time. One that can fail has a method
// Err() error too, and its texts are not used after a failure. The tokenizers of
// package token are encoders.
type Encoder interface {
	Encode(dst []int32, text []byte) []int32
}

// A Spec says which rows a run reads.
type Spec struct {
	Sequence int // T: a row has T+1 ids
	Lanes    int // L: fixed for the life of a run
	Seed     uint64
	Sources  []Source
	Shuffle  string // "window" (default): documents of a block are shuffled; "none": file order
	Joined   bool   // documents: joined; otherwise they are masked from each other
	Whole    bool   // documents that fit into a row are not cut; what they leave free is padded
	Stages   []Stage

	BOS, EOS   int32
	AddBOS     bool   // each document starts with BOS
	Vocabulary int    // ids are below; 0: not checked
	Tokenizer  string // tells the encoder from others, in the fingerprint of a State

	Rank, Ranks int    // d of R, R divides Lanes; 0 Ranks: 1
	Cache       string // a folder where counts may be kept; "": none
	Ahead       int    // rows that each lane is ahead; 0: 4
	Times       *Times // adds up what the lanes do; nil: nobody wants to know
}

// A Loader makes the rows of a run. Its methods may be called by several
// goroutines, though calls of Next then share the rows.
type Loader struct {
	spec    Spec
	enc     Encoder
	sources []*source
	stages  []stage // the first one begins with row 0

	mu      sync.Mutex
	served  int64       // rows of this rank
	lanes   []laneState // of this rank: lane Rank + i·Ranks, after the rows served
	crew    *crew       // nil: nobody works ahead
	accept  bool        // a state may be of files that have changed since
	counted Epoch       // of the first source, once somebody has asked
	err     error       // the end, or what went wrong

	closing context.Context
	cancel  context.CancelFunc
}

// Open finds the files of all sources and makes sure that each has a document.
// Errors are fault.Config where the spec is to blame, fault.Data where files are.
// A text is first tokenized by [Loader.Next]. enc may be nil if all documents
// come as ids.
func Open(spec Spec, enc Encoder) (_ *Loader, err error) {
	if err := spec.check(); err != nil {
		return nil, err
	}
	named, err := unique(spec.Sources)
	if err != nil {
		return nil, err
	}
	l := &Loader{spec: spec, enc: enc}
	l.spec.Sources = named
	defer func() {
		if err != nil {
			l.closeSources()
		}
	}()
	for i, src := range named {
		s, err := newSource(src, spec.Lanes, spec.Vocabulary)
		if err != nil {
			return nil, err
		}
		l.sources = append(l.sources, s)
		if err := s.checkTokenizer(spec.Tokenizer); err != nil {
			return nil, err
		}
		if err := s.check(enc != nil); err != nil {
			return nil, err
		}
		if s.blocks < spec.Lanes && !s.Rows {
			return nil, fault.Dataf("data: source %s: %d bytes make %d blocks, want one for each "+
				"of %d lanes", s.Name, s.size, s.blocks, spec.Lanes)
		}
		s.key = itoa(int64(i))
	}
	if err := checkReady(l.sources, &l.spec); err != nil {
		return nil, err
	}
	if l.stages, err = stages(l.sources, spec.Stages); err != nil {
		return nil, err
	}
	l.lanes = l.fresh()
	l.closing, l.cancel = context.WithCancel(context.Background())
	return l, nil
}

// check refuses a spec that says nothing or contradicts itself, and sets Ranks
// and Ahead where they are left out.
func (p *Spec) check() error {
	if p.Ranks == 0 {
		p.Ranks = 1
	}
	if p.Ahead == 0 {
		p.Ahead = 4
	}
	switch {
	case p.Sequence < 1 || p.Sequence > 1<<24:
		return fault.Configf("data: sequence: got %d, want 1 … %d", p.Sequence, 1<<24)
	case p.Lanes < 1 || p.Lanes > 1<<20:
		return fault.Configf("data: lanes: got %d, want 1 … %d", p.Lanes, 1<<20)
	case p.Ranks < 1 || p.Lanes%p.Ranks != 0:
		return fault.Configf("data: %d data ranks for %d lanes: want a divisor", p.Ranks, p.Lanes)
	case p.Rank < 0 || p.Rank >= p.Ranks:
		return fault.Configf("data: rank: got %d, want 0 … %d", p.Rank, p.Ranks-1)
	case p.Ahead < 0:
		return fault.Configf("data: rows ahead: got %d, want 1 or more", p.Ahead)
	case p.Shuffle != "" && p.Shuffle != "window" && p.Shuffle != "none":
		return fault.Configf("data: shuffle: got %q, want window or none", p.Shuffle)
	case len(p.Sources) == 0:
		return fault.Configf("data: no sources")
	case p.Vocabulary > 0 && (p.EOS < 0 || int(p.EOS) >= p.Vocabulary):
		return fault.Configf("data: end-of-sequence: got id %d, want 0 … %d", p.EOS, p.Vocabulary-1)
	case p.Vocabulary > 0 && p.AddBOS && (p.BOS < 0 || int(p.BOS) >= p.Vocabulary):
		return fault.Configf("data: begin-of-sequence: got id %d, want 0 … %d", p.BOS, p.Vocabulary-1)
	}
	return nil
}

// fresh is the lanes of this rank at the start of a run.
func (l *Loader) fresh() []laneState {
	lanes := make([]laneState, l.spec.Lanes/l.spec.Ranks)
	for i := range lanes {
		lanes[i].before = make([]Cursor, len(l.sources))
	}
	return lanes
}

// Next returns the next batch rows of this rank: rows g = d, d+R, d+2R, … of the
// run, where they were left off. All ranks of a step ask for as many.
//
// When every source of a lane has been read as often as its Epochs say, what the
// lane has left is less than a row, and the run ends with the row before the one
// that would come from there: Next returns the rows up to it, perhaps none, and
// io.EOF. Lanes do not end together, so ranks do not either: the first one to
// end ends the run.
//
// Rows behind which more documents are damaged than a source's Damaged allows are
// an error. With any other error Next returns no rows and serves none, now and later.
func (l *Loader) Next(batch int) ([]Row, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.closed(); err != nil {
		return nil, err
	}
	if l.err != nil {
		return nil, l.err
	}
	if l.crew == nil {
		l.crew = l.start()
	}
	rows := make([]Row, 0, max(0, batch))
	after := slices.Clone(l.lanes)
	for i := range int64(batch) {
		n := int((l.served + i) % int64(len(l.lanes)))
		var it item
		select {
		case it = <-l.crew.queues[n]:
		case <-l.closing.Done():
			return nil, l.closed()
		}
		if it.err != nil {
			if l.err = it.err; !errors.Is(it.err, io.EOF) {
				return nil, l.err
			}
			if l.err = io.EOF; l.served+i == 0 {
				l.err = fault.Dataf("data: lane %d gets no row of %d ids in the epochs that the sources "+
					"are read: want fewer lanes, shorter rows or more epochs",
					l.spec.Rank, l.spec.Sequence+1)
				return nil, l.err
			}
			break
		}
		rows = append(rows, it.row)
		after[n] = it.after
	}
	if err := l.checkDamage(after); err != nil {
		l.err = err
		return nil, err
	}
	l.served += int64(len(rows))
	l.lanes = after
	return rows, l.err
}

// checkDamage refuses rows behind which more documents are damaged than may be.
func (l *Loader) checkDamage(after []laneState) error {
	for i, s := range l.sources {
		var n int64
		for _, at := range after {
			n += at.before[i].Skipped[damaged]
		}
		if n > s.Damaged {
			return s.tooDamaged(n)
		}
	}
	return nil
}

func (l *Loader) closed() error {
	if l.closing.Err() != nil {
		return errors.New("data: the loader is closed")
	}
	return nil
}

// Close stops whoever works ahead and waits until they have. It may be called
// during Next, which then returns an error, and more than once.
func (l *Loader) Close() {
	l.cancel()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stop()
	l.closeSources()
}

func (l *Loader) closeSources() {
	for _, s := range l.sources {
		s.close()
	}
}

func (l *Loader) stop() {
	if l.crew != nil {
		l.crew.stop()
		l.crew = nil
	}
}

// A crew works ahead: a goroutine for each lane, of which no more compute at a
// time than there are processors.
type crew struct {
	queues []chan item
	cancel context.CancelFunc
	wait   sync.WaitGroup
}

// item is a row and where its lane is when the row has been served.
type item struct {
	row   Row
	after laneState
	err   error
}

// producer is a lane of documents or of ready rows.
type producer interface {
	row() (Row, error)
	state() laneState
	watch() *clock
	close()
}

func (l *Loader) start() *crew {
	ctx, cancel := context.WithCancel(l.closing)
	c := &crew{cancel: cancel, queues: make([]chan item, len(l.lanes))}
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i, at := range l.lanes {
		// The row in the hand of the producer counts.
		queue := make(chan item, l.spec.Ahead-1)
		c.queues[i] = queue
		c.wait.Go(func() { l.work(ctx, slots, queue, l.spec.Rank+i*l.spec.Ranks, at) })
	}
	return c
}

// work makes the rows of one lane until ctx ends or the lane does.
func (l *Loader) work(
	ctx context.Context, slots chan struct{}, queue chan<- item, number int, at laneState,
) {
	var p producer
	defer func() {
		if p != nil {
			p.close()
		}
	}()
	for {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		var it item
		if p == nil {
			p, it.err = l.producer(number, at)
		}
		if it.err == nil {
			p.watch().start()
			it.row, it.err = p.row()
			p.watch().stop()
			it.after = p.state()
		}
		<-slots
		select {
		case queue <- it:
		case <-ctx.Done():
			return
		}
		if it.err != nil {
			return
		}
	}
}

func (l *Loader) producer(number int, at laneState) (producer, error) {
	if l.sources[0].Rows {
		return newReady(l, number, at)
	}
	n := newLane(l, number, at)
	if l.spec.Whole {
		return newPacker(n, at)
	}
	return n, n.resume(at.offset)
}

func (c *crew) stop() {
	c.cancel()
	c.wait.Wait()
}
