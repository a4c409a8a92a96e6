// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"

	"pleach/half"
	"pleach/program"
)

// stage is a model function at work: the builder and what its blocks share.
type stage struct {
	Spec
	b         *program.Builder
	heads     program.Heads
	params    map[string]*program.Value
	positions *program.Value
	attend    func(qkv *program.Value, layer int) *program.Value
}

// Accumulate is one micro-batch on one stage of the pipeline: forward and
// backward, adding gradients to their sums, and on the last stage the losses
// and the number of unmasked tokens to the tally. The program is the same for
// all ranks of the stage.
//
// Inputs: positions [N], which restart with each document (see
// [program.Builder.Attention]); on the first stage tokens [N], on the last
// labels [N], a negative label being masked.
func Accumulate(s Spec, l program.Layout, at int, batch Batch) (*program.Program, error) {
	if err := s.checkStage(l, at, batch); err != nil {
		return nil, err
	}
	b := program.New("accumulate", l)
	m := newStage(b, s, at, batch)
	if h := m.trunk(at, batch.N()); h != nil {
		b.HeadLoss(h, m.head(), b.Input("labels", half.I32, batch.N()), b.Tally())
	}
	b.Backward()
	return b.Build()
}

// Score is the forward half alone. On the last stage its outputs are the loss
// of each token [N], minus the log-probability of its label, and, if top is not
// zero, the top most probable next words of each token [N,top,2]. Inputs as
// Accumulate's.
func Score(s Spec, l program.Layout, at int, batch Batch, top int) (*program.Program, error) {
	if err := s.checkStage(l, at, batch); err != nil {
		return nil, err
	}
	b := program.New("score", l)
	m := newStage(b, s, at, batch)
	h := m.trunk(at, batch.N())
	if h == nil {
		return b.Build()
	}
	loss, lse := b.HeadLoss(h, m.head(), b.Input("labels", half.I32, batch.N()), nil)
	if top == 0 {
		return b.Build(loss)
	}
	return b.Build(loss, b.HeadTop(h, m.head(), lse, top))
}

// Window is the shape of an Extend program: N tokens go in, of which M give
// logits; the cache holds Slots sequences of up to T tokens.
type Window struct{ N, M, Slots, T int }

// Extend appends N tokens to the sequences of a cache: the prefill of a prompt
// or, with a token for each sequence, a step of decoding. Its output on the last
// stage is the logits [M,V] of the tokens that pick names, columns of them where
// the vocabulary is split.
//
// Inputs: positions and slots [N], on the first stage tokens [N], on the last
// pick [M], indices of tokens. The cache of layer i is the state "cache.i".
func Extend(name string, s Spec, l program.Layout, at int, w Window) (*program.Program, error) {
	l.Sequence = false
	if w.N < 1 || w.M < 1 || w.Slots < 1 || w.T < 1 {
		return nil, fmt.Errorf("model: %s: window of %d tokens, %d logits, %d slots of %d: want all positive",
			name, w.N, w.M, w.Slots, w.T)
	}
	if err := s.checkStage(l, at, Batch{B: w.N, T: 1}); err != nil {
		return nil, err
	}
	b := program.New(name, l)
	m := newStage(b, s, at, Batch{B: 1, T: w.T})
	m.positions = b.Input("positions", half.I32, w.N)
	slots := b.Input("slots", half.I32, w.N)
	m.attend = func(qkv *program.Value, i int) *program.Value {
		cache := b.State(fmt.Sprintf("cache.%d", i), l.Compute, program.Cols, w.Slots, w.T, 2*m.heads.G*m.heads.K)
		return b.CachedAttention(qkv, cache, slots, m.positions, m.heads)
	}
	h := m.trunk(at, w.N)
	if h == nil {
		return b.Build()
	}
	h = b.Embed(h, b.Input("pick", half.I32, w.M))
	return b.Build(b.Logits(h, m.head()))
}

// newStage declares the parameters of stage at.
func newStage(b *program.Builder, s Spec, at int, batch Batch) *stage {
	l := b.Layout()
	t := l.Mesh.Size(program.Tensor)
	m := &stage{Spec: s, b: b, heads: s.heads(t, batch.T), params: map[string]*program.Value{}}
	for _, p := range s.held(l, at, l.Mesh.Size(program.Pipe), t) {
		m.params[p.Name] = declare(b, p)
	}
	m.attend = func(qkv *program.Value, _ int) *program.Value {
		return b.Attention(qkv, m.positions, m.heads)
	}
	return m
}

// trunk appends everything before the head and returns the last norm's output
// [N,D], nil if a later stage has it.
func (m *stage) trunk(at, N int) *program.Value {
	b, stages := m.b, m.b.Layout().Mesh.Size(program.Pipe)
	if m.positions == nil {
		m.positions = b.Input("positions", half.I32, N)
	}
	x := m.enter(at, N)
	for i, hi := m.layers(at, stages); i < hi; i++ {
		x = b.Keep(m.block(x, i))
	}
	if at < stages-1 {
		b.Send(x)
		return nil
	}
	return b.Keep(m.gather(b.RMSNorm(x, m.params["norm"], m.Eps)))
}

// enter is the residual stream [N,D] at the start of a stage, [N/t,D] under
// sequence parallelism.
func (m *stage) enter(at, N int) *program.Value {
	b := m.b
	if at == 0 {
		return b.Keep(m.reduce(b.Embed(m.params["embed"], b.Input("tokens", half.I32, N))))
	}
	if b.Layout().Sequence {
		return b.Keep(b.Recv(program.Rows, N/b.Layout().Mesh.Size(program.Tensor), m.D))
	}
	return b.Keep(b.Recv(program.Same, N, m.D))
}

// block is one decoder layer.
func (m *stage) block(x *program.Value, i int) *program.Value {
	b, p := m.b, m.layer(i)
	h := m.gather(b.RMSNorm(x, p.attnNorm, m.Eps))                      // [N,D]
	qkv := b.RoPE(p.qkv.apply(b, h), m.positions, m.heads, m.Rope)      // [N,(H+2G)K]
	x = b.Add(x, p.out.applySum(m, m.attend(qkv, i)))                   // [N,D]
	h = m.gather(b.RMSNorm(x, p.mlpNorm, m.Eps))                        // [N,D]
	return b.Add(x, p.down.applySum(m, b.SwiGLU(p.gateUp.apply(b, h)))) // [N,F] inside, [N,D]
}

// gather gives every tensor rank all tokens before the ranks divide a block's
// weights; nothing unless sequence parallel.
func (m *stage) gather(x *program.Value) *program.Value {
	if m.b.Layout().Sequence {
		return m.b.AllGather(x)
	}
	return x
}

// reduce sums what the tensor ranks computed with their weights.
func (m *stage) reduce(x *program.Value) *program.Value {
	if m.b.Layout().Sequence {
		return m.b.ReduceScatter(x)
	}
	return m.b.AllReduce(x)
}

// head is the matrix [V,D] that makes logits.
func (m *stage) head() *program.Value {
	if h := m.params["head"]; h != nil {
		return h
	}
	return m.params["embed"]
}

// affine is a matrix and its bias, nil if it has none.
type affine struct{ w, c *program.Value }

// apply multiplies by a matrix split in rows.
func (a affine) apply(b *program.Builder, x *program.Value) *program.Value {
	y := b.Linear(x, a.w)
	if a.c != nil {
		y = b.Bias(y, a.c)
	}
	return y
}

// applySum multiplies by a matrix split in columns and sums over the ranks.
func (a affine) applySum(m *stage, x *program.Value) *program.Value {
	y := m.reduce(m.b.Linear(x, a.w))
	if a.c != nil {
		y = m.b.Bias(y, a.c)
	}
	return y
}

type layer struct {
	attnNorm, mlpNorm      *program.Value
	qkv, out, gateUp, down affine
}

func (m *stage) layer(i int) layer {
	in := func(name string) *program.Value { return m.params[inLayer(i, name)] }
	both := func(name string) affine { return affine{in(name), in(name + ".bias")} }
	return layer{
		attnNorm: in("attn.norm"), mlpNorm: in("mlp.norm"),
		qkv: both("attn.qkv"), out: both("attn.out"), gateUp: both("mlp.gateup"), down: both("mlp.down"),
	}
}
