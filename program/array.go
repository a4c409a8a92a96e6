// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"fmt"
	"unsafe"

	"pleach/half"
)

// Array is a dense row-major array in host memory: what goes into a program's
// inputs and comes out of its outputs. It does no arithmetic. The bytes are in
// the byte order of the host, which is little-endian on every supported one,
// and aligned to their element.
type Array struct {
	Type  half.DType
	Shape []int
	Bytes []byte
}

// Number is an element type that an [Array] can be viewed as.
type Number interface {
	float32 | float64 | int32 | uint16 | int8
}

// ArrayOf views x as an array of the given shape, all of x as one dimension if
// none is given. The array aliases x. uint16 holds the bits of bf16.
func ArrayOf[E Number](x []E, shape ...int) Array {
	if len(shape) == 0 {
		shape = []int{len(x)}
	}
	a := Array{Type: typeOf[E](), Shape: shape}
	if len(x) > 0 {
		a.Bytes = unsafe.Slice((*byte)(unsafe.Pointer(&x[0])), len(x)*a.Type.Size())
	}
	return a
}

// View is the elements of a, which aliases them. It panics if E is not the
// element type: that is a wrong program, not wrong input.
func View[E Number](a Array) []E {
	if t := typeOf[E](); a.Type != t {
		panic(fmt.Sprintf("program: viewing %v as %v", a.Type, t))
	}
	if len(a.Bytes) == 0 {
		return nil
	}
	return unsafe.Slice((*E)(unsafe.Pointer(&a.Bytes[0])), len(a.Bytes)/a.Type.Size())
}

// NewArray allocates zeros for v.
func NewArray(v *Value) Array {
	words := make([]float64, (v.Bytes()+7)/8) // aligned for every element type
	a := ArrayOf(words)
	return Array{Type: v.Type, Shape: v.Shape, Bytes: a.Bytes[:v.Bytes():v.Bytes()]}
}

func typeOf[E Number]() half.DType {
	var e E
	switch any(e).(type) {
	case float64:
		return half.F64
	case int32:
		return half.I32
	case uint16:
		return half.BF16
	case int8:
		return half.I8
	}
	return half.F32
}
