// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"unsafe"
)

// grid is the arguments of a kernel of AMX.
type grid struct {
	rows, cols    int // of tiles in a block
	stream        bool
	k             int
	m, n          int // of a block; more than one block only of 32
	groups        int
	panels        int
	as, ap, ldc   int
	bnext         int
	acc           bool
	offsetA       int
	numbers       int // what a and b are: normal, any bits, tiny
	shapes        tileShapes
	a, b, c, want *region
}

func (g *grid) name() string {
	if g.stream {
		return fmt.Sprintf("streamAMX_%dx%d", g.rows, g.cols)
	}
	return fmt.Sprintf("tilesAMX_%dx%d", g.rows, g.cols)
}

// grid draws arguments for a kernel.
func (b bench) grid(rows, cols int, stream bool) *grid {
	g := &grid{rows: rows, cols: cols, stream: stream, k: 1 + b.IntN(4), groups: 1, panels: 1}
	g.m, g.n = 16*(rows-1)+1+b.IntN(16), 16*(cols-1)+1+b.IntN(16)
	if b.IntN(2) == 0 && rows == 2 {
		g.m, g.groups = 32, 1+b.IntN(3)
	}
	if b.IntN(2) == 0 && cols == 2 {
		g.n, g.panels = 32, 1+b.IntN(3)
	}
	g.as, g.ap = 64*g.k+2*b.IntN(40), 64
	if b.IntN(2) == 0 { // turned: the rows of a step, then those of the next
		g.as, g.ap = 64, 64*(32*(g.groups-1)+g.m+b.IntN(3))
	}
	g.ldc = 4 * (32*(g.panels-1) + g.n + b.IntN(5))
	g.bnext = 128*16*g.k + 128*b.IntN(3)
	g.acc, g.offsetA, g.numbers = b.IntN(2) == 0, b.IntN(3), b.IntN(3)
	return g
}

// number is 32 bits of two bf16 numbers or of one float32.
func (b bench) number(kind int, pair bool) uint32 {
	x := func() uint32 {
		scale := []float64{1, 0, 0x1p-63}[kind]
		return math.Float32bits(float32(b.NormFloat64() * scale * math.Ldexp(1, b.IntN(8))))
	}
	switch {
	case kind == 1:
		return b.Uint32()
	case pair:
		return x()>>16 | x()&0xffff0000
	case kind == 2:
		return math.Float32bits(float32(b.NormFloat64() * 0x1p-125))
	}
	return x()
}

// prepare makes the memory of a grid. Rows of A and panels of B that the kernel has
// no business with are not to be touched.
func (b bench) prepare(m *machine, g *grid) {
	m.memory = nil
	high := 32*(g.groups-1) + g.m
	if g.ap == 64 {
		g.a = m.matrix(high, 64*g.k, g.as, false)
	} else {
		g.a = m.matrix(g.k, 64*high, g.ap, false)
	}
	g.b = m.matrix(16*g.k, 4*g.n, 128, false)
	if g.panels > 1 {
		g.b = m.matrix(g.panels, 128*16*g.k, g.bnext, false)
	}
	g.c = m.matrix(high, 4*(32*(g.panels-1)+g.n), g.ldc, true)
	for i, r := range []*region{g.a, g.b, g.c} {
		for at := 0; at+4 <= len(r.bytes); at += 4 {
			binary.LittleEndian.PutUint32(r.bytes[at:], b.number(g.numbers, i < 2))
		}
	}
	g.want = &region{bytes: slices.Clone(g.c.bytes)}
	second := [2]int{max(g.m-16, 0), max(g.n-16, 0)}
	g.shapes = shapesOf(min(g.m, 16), second[0], min(g.n, 16), second[1])
	shapes := &region{bytes: g.shapes[:], reads: make([]bool, 64), writes: make([]bool, 64)}
	shapes.base = uint64(uintptr(unsafe.Pointer(&g.shapes[0])))
	for i := range shapes.reads {
		shapes.reads[i] = true
	}
	m.memory = append(m.memory, shapes)
}

// run runs a kernel on a grid.
func (g *grid) run(m *machine, r *routine) error {
	*m = machine{memory: m.memory}
	flag := uint64(0x1234_5678_9abc_de00) // a bool has eight bits
	if g.acc {
		flag |= 1
	}
	return m.run(r, uint64(g.k), g.a.start(), uint64(g.as), uint64(g.ap), g.b.start(), uint64(g.bnext), g.c.start(),
		uint64(g.ldc), flag, uint64(g.groups), uint64(g.panels), m.memory[len(m.memory)-1].base)
}

// plain runs the same in plain Go, on another C.
func (g *grid) plain() {
	a, b, c := &g.a.bytes[4096], &g.b.bytes[4096], &g.want.bytes[4096]
	plainGrid(g.k, (*uint16)(unsafe.Pointer(a)), g.as, g.ap, (*float32)(unsafe.Pointer(b)), g.bnext,
		(*float32)(unsafe.Pointer(c)), g.ldc, g.acc, g.groups, g.panels, &g.shapes, g.rows, g.cols)
}

// processor runs the same on the processor.
func (g *grid) processor() {
	a, b, c := &g.a.bytes[4096], &g.b.bytes[4096], &g.c.bytes[4096]
	tileGrid(g.rows, g.cols, g.stream, g.k, (*uint16)(unsafe.Pointer(a)), g.as, g.ap, (*float32)(unsafe.Pointer(b)),
		g.bnext, (*float32)(unsafe.Pointer(c)), g.ldc, g.acc, g.groups, g.panels, &g.shapes)
}

// different says where C differs from what plain Go makes: of NaN only that it is one.
func (g *grid) different() error {
	if bytes.Equal(g.c.bytes, g.want.bytes) {
		return nil
	}
	for at := 0; at+4 <= len(g.c.bytes); at += 4 {
		got, want := binary.LittleEndian.Uint32(g.c.bytes[at:]), binary.LittleEndian.Uint32(g.want.bytes[at:])
		x, y := math.Float32frombits(got), math.Float32frombits(want)
		if got != want && (x == x || y == y) {
			return fmt.Errorf("c: byte %d: got %x, want %x", at-4096, x, y)
		}
	}
	return nil
}

// amxRoutines are the kernels as they are committed.
func amxRoutines(t *testing.T) map[string]*routine {
	t.Helper()
	all, err := routinesOf("amx_tiles_amd64.s")
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// amxShapes are the blocks for which there is a kernel.
var amxShapes = []grid{
	{rows: 1, cols: 1},
	{rows: 1, cols: 2},
	{rows: 2, cols: 1},
	{rows: 2, cols: 2},
	{rows: 2, cols: 1, stream: true},
	{rows: 2, cols: 2, stream: true},
}

// TestAMXText runs the text of the kernels on a machine in Go: C has the bits of plain
// Go, nothing but the operands is touched, and tiles are used as the processor wants
// it.
func TestAMXText(t *testing.T) {
	all, b := amxRoutines(t), newBench(t, AVX512)
	for _, s := range amxShapes {
		for range 40 {
			var m machine
			g := b.grid(s.rows, s.cols, s.stream)
			b.prepare(&m, g)
			g.plain()
			err := g.run(&m, all[g.name()])
			if err == nil {
				err = g.different()
			}
			if err != nil {
				t.Fatalf("%+v: %v", grid{
					k: g.k, m: g.m, n: g.n, groups: g.groups, panels: g.panels, as: g.as, ap: g.ap,
					ldc: g.ldc, acc: g.acc, rows: g.rows, cols: g.cols, stream: g.stream,
				}, err)
			}
			if want := g.k * g.groups * g.panels * g.rows * g.cols; m.dots != want {
				t.Fatalf("got %d products, want %d", m.dots, want)
			}
		}
	}
}

// TestAMXPeakText runs the peak.
func TestAMXPeakText(t *testing.T) {
	g := grid{shapes: shapesOf(16, 16, 16, 16)}
	m := machine{}
	r := m.matrix(1, 64, 64, false)
	copy(r.bytes[4096:], g.shapes[:])
	if err := m.run(amxRoutines(t)["peakAMX"], 3, r.start()); err != nil || m.dots != 12 {
		t.Errorf("got %d products, %v, want 12", m.dots, err)
	}
}

// TestAMXTextMatters: without any one of its instructions, but those that prefetch, a
// kernel fails. So the machine sees what they do.
func TestAMXTextMatters(t *testing.T) {
	all, b := amxRoutines(t), newBench(t, AVX512)
	for _, s := range amxShapes {
		whole := all[s.name()]
		for i, l := range whole.code {
			if strings.Contains(l.text, "R12") || strings.HasPrefix(l.text, "CMPQ 24(SP)") || l.text == "JNE ahead" {
				continue
			}
			if !b.missed(whole.without(i), s) {
				t.Errorf("%s: nothing changes without line %d, %s", whole.name, i, l.text)
			}
		}
	}
}

// without is a routine without a line.
func (r *routine) without(i int) *routine {
	less := *r
	less.code = slices.Delete(slices.Clone(r.code), i, i+1)
	less.labels = map[string]int{}
	for name, at := range r.labels {
		if at > i {
			at--
		}
		less.labels[name] = at
	}
	return &less
}

// missed says whether one of some grids fails.
func (b bench) missed(r *routine, s grid) bool {
	for range 60 {
		var m machine
		g := b.grid(s.rows, s.cols, s.stream)
		b.prepare(&m, g)
		g.plain()
		if g.run(&m, r) != nil || g.different() != nil {
			return true
		}
	}
	return false
}
