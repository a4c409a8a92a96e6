// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package infer

import (
	"context"
	"fmt"
	"slices"

	"pleach/internal/fault"
)

// sequence is one of those that a batch extends.
type sequence struct {
	index int     // of its prompt
	ids   []int32 // after the prompt
	at    int     // position of the last of them
}

// GenerateAll is Generate for many prompts, as many at a time as the generator has
// slots: a step reads the weights once for all of them. When a sequence ends, the next
// prompt takes its slot. What a sequence becomes does not depend on the others: it is
// what Generate makes of its prompt alone.
//
// done is called with the new ids of each prompt, in the order of the prompts. When ctx
// is done it returns without an error; sequences that were under way are not reported.
func (g *Generator) GenerateAll(
	ctx context.Context, prompts [][]int32, n int, how Sampling, stop []int32, done func(i int, ids []int32) error,
) error {
	for i, p := range prompts {
		if err := g.check(p); err != nil {
			return fmt.Errorf("prompt %d: %w", i, err)
		}
	}
	if err := how.Check(); err != nil {
		return err
	}
	b := &batch{
		Generator: g, prompts: prompts, n: n, how: how, stop: stop, done: done, ended: map[int][]int32{},
		slots: make([]*sequence, g.slots),
	}
	for {
		if more, err := b.fill(ctx); !more || err != nil {
			return err
		}
		if more, err := b.extend(ctx); !more || err != nil {
			return err
		}
	}
}

// batch is a GenerateAll under way.
type batch struct {
	*Generator
	prompts  [][]int32
	n        int
	how      Sampling
	stop     []int32
	done     func(i int, ids []int32) error
	slots    []*sequence // nil where none is under way
	begun    int         // prompts
	ended    map[int][]int32
	reported int
}

// fill begins prompts in free slots, and says whether there is anything to extend.
func (b *batch) fill(ctx context.Context) (more bool, err error) {
	for slot := range b.slots {
		for b.slots[slot] == nil && b.begun < len(b.prompts) {
			prompt := b.prompts[b.begun]
			logits, err := b.append(ctx, prompt, 0, slot)
			if logits == nil {
				return false, err
			}
			b.slots[slot] = &sequence{index: b.begun, at: len(prompt) - 1}
			b.begun++
			if err := b.take(slot, logits); err != nil {
				return false, err
			}
		}
	}
	return slices.ContainsFunc(b.slots, func(s *sequence) bool { return s != nil }), nil
}

// take draws the next id of a sequence, and ends it if it is the last.
func (b *batch) take(slot int, logits []float32) error {
	s := b.slots[slot]
	s.at++
	if b.n > 0 {
		s.ids = append(s.ids, b.how.draw(logits, len(s.ids)))
	}
	if len(s.ids) < b.n && s.at < b.T && !slices.Contains(b.stop, s.ids[len(s.ids)-1]) {
		return nil
	}
	b.slots[slot], b.ended[s.index] = nil, s.ids
	for ids, ok := b.ended[b.reported]; ok; ids, ok = b.ended[b.reported] {
		delete(b.ended, b.reported)
		if err := b.done(b.reported, ids); err != nil {
			return err
		}
		b.reported++
	}
	return nil
}

// extend adds an id to each sequence. One that is alone does not wait for empty slots.
func (b *batch) extend(ctx context.Context) (more bool, err error) {
	var active []int
	for slot, s := range b.slots {
		if s != nil {
			active = append(active, slot)
		}
	}
	if ctx.Err() != nil {
		return false, nil
	}
	if len(active) == 1 {
		slot := active[0]
		s := b.slots[slot]
		logits, err := b.append(ctx, s.ids[len(s.ids)-1:], s.at, slot)
		if logits == nil {
			return false, err
		}
		return true, b.take(slot, logits)
	}
	d := b.decode
	for slot, s := range b.slots {
		d.tokens[slot], d.positions[slot] = 0, 0 // what nobody reads
		if s != nil {
			d.tokens[slot], d.positions[slot] = s.ids[len(s.ids)-1], int32(s.at)
		}
	}
	if err := d.run(); err != nil {
		return false, err
	}
	for _, slot := range active {
		logits := d.logits[slot*b.spec.V:][:b.spec.V]
		if err := finite(logits, b.slots[slot].at); err != nil {
			return false, fmt.Errorf("prompt %d: %w", b.slots[slot].index, err)
		}
		if err := b.take(slot, logits); err != nil {
			return false, err
		}
	}
	return true, nil
}

// run runs the program.
func (s *extend) run() error {
	if err := s.x.Run(s.call).Wait(); err != nil {
		return fmt.Errorf("infer: %w", err)
	}
	return nil
}

// checkSlots refuses numbers of sequences that no cache has room for.
func checkSlots(slots int) error {
	if slots < 1 || slots > 1<<12 {
		return fault.Configf("infer: generating: %d sequences at a time, want 1 to %d", slots, 1<<12)
	}
	return nil
}
