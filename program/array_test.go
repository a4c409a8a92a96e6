// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package program_test

import (
	"slices"
	"testing"
	"unsafe"

	"pleach/half"
	"pleach/program"
)

func TestArray(t *testing.T) {
	x := []float32{1, 2, 3, 4, 5, 6}
	a := program.ArrayOf(x, 2, 3)
	if a.Type != half.F32 || !slices.Equal(a.Shape, []int{2, 3}) || len(a.Bytes) != 24 {
		t.Errorf("got %v %v of %d bytes", a.Type, a.Shape, len(a.Bytes))
	}
	program.View[float32](a)[4] = 50
	if x[4] != 50 {
		t.Error("a view is a copy")
	}
	if b := program.ArrayOf([]int32{7, 8}); b.Type != half.I32 || !slices.Equal(b.Shape, []int{2}) || b.Bytes[4] != 8 {
		t.Errorf("got %+v", b)
	}
	if c := program.ArrayOf([]uint16{0x3f80}); c.Type != half.BF16 || program.View[uint16](c)[0] != 0x3f80 {
		t.Errorf("got %+v", c)
	}
	if d := program.ArrayOf([]float64{}, 0, 3); d.Type != half.F64 || program.View[float64](d) != nil {
		t.Errorf("got %+v", d)
	}
}

func TestNewArray(t *testing.T) {
	for _, n := range []int{0, 1, 3, 8} {
		v := &program.Value{Type: half.BF16, Shape: []int{n, 1}}
		a := program.NewArray(v)
		if len(a.Bytes) != v.Bytes() || cap(a.Bytes) != len(a.Bytes) || len(program.View[uint16](a)) != n {
			t.Errorf("%v: %d bytes", v, len(a.Bytes))
		}
		if n > 0 && uintptr(unsafe.Pointer(&a.Bytes[0]))%8 != 0 {
			t.Errorf("%v: not aligned", v)
		}
	}
}

// TestWrongView: a view as another type is a bug of the caller.
func TestWrongView(t *testing.T) {
	defer func() {
		if got := recover(); got != "program: viewing f32 as i32" {
			t.Errorf("got %v", got)
		}
	}()
	program.View[int32](program.ArrayOf([]float32{1}))
}
