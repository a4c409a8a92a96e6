// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"slices"
	"sync"

	"pleach/program"
)

// World connects the ranks of a mesh.
type World struct {
	mesh  program.Mesh
	depth int

	mu     sync.Mutex
	groups map[groupKey]*exchange
	links  map[[2]program.Place]chan []float64
}

// groupKey names ranks that exchange: those which differ from a place only on
// one axis, or n consecutive ones of them.
type groupKey struct {
	axis  program.Axis
	rest  program.Place // its position on the axis is zero
	n, at int
}

// NewWorld makes the connections. A send returns as soon as one of depth places
// to the receiver is free; 1F1B needs at least one.
func NewWorld(m program.Mesh, depth int) *World {
	return &World{
		mesh: m, depth: depth,
		groups: map[groupKey]*exchange{}, links: map[[2]program.Place]chan []float64{},
	}
}

// gather exchanges x among the ranks that differ from at only on an axis, and
// among them, if n > 0, only in groups of n consecutive ones. It returns all
// contributions in the order of ranks.
func (w *World) gather(at program.Place, axis program.Axis, n int, x []float64) [][]float64 {
	if n == 0 {
		n = w.mesh.Size(axis)
	}
	i, rest := at.On(axis), at
	switch axis {
	case program.Tensor:
		rest.Tensor = 0
	case program.Data:
		rest.Data = 0
	default:
		rest.Pipe = 0
	}
	return w.group(groupKey{axis, rest, n, i / n}).swap(i%n, x)
}

func (w *World) group(key groupKey) *exchange {
	w.mu.Lock()
	defer w.mu.Unlock()
	e := w.groups[key]
	if e == nil {
		e = &exchange{n: key.n, now: &round{parts: make([][]float64, key.n)}}
		e.full.L = &e.mu
		w.groups[key] = e
	}
	return e
}

// link is the channel of a pipeline from one rank to its neighbour.
func (w *World) link(from, to program.Place) chan []float64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := [2]program.Place{from, to}
	if w.links[key] == nil {
		w.links[key] = make(chan []float64, w.depth)
	}
	return w.links[key]
}

// exchange lets n ranks see each other's data, round after round.
type exchange struct {
	mu   sync.Mutex
	full sync.Cond
	n    int
	now  *round
}

type round struct {
	parts [][]float64
	count int
}

func (e *exchange) swap(i int, x []float64) [][]float64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	r := e.now
	r.parts[i] = slices.Clone(x)
	if r.count++; r.count == e.n {
		e.now = &round{parts: make([][]float64, e.n)}
		e.full.Broadcast()
	}
	for r.count < e.n {
		e.full.Wait()
	}
	return r.parts
}

// treeSum adds parts elementwise in a fixed binary tree: the root joins the even
// and the odd parts, and so on down. If chunk c of C belongs to rank c mod d,
// then what a rank owns is a subtree for every d that divides C (powers of two),
// so it may sum its own chunks first and change no bit.
func treeSum(parts [][]float64) []float64 {
	if len(parts) == 1 {
		return slices.Clone(parts[0])
	}
	var half [2][][]float64
	for i, p := range parts {
		half[i%2] = append(half[i%2], p)
	}
	x, y := treeSum(half[0]), treeSum(half[1])
	for i := range x {
		x[i] += y[i]
	}
	return x
}
