// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package half

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// value is the meaning of a 16-bit float by its definition.
func value(h uint16, ebits, fbits int) float64 {
	sign := 1.0
	if h>>15 != 0 {
		sign = -1
	}
	e := int(h>>fbits) & (1<<ebits - 1)
	f := float64(int(h) & (1<<fbits - 1))
	bias, one := 1<<(ebits-1)-1, math.Ldexp(1, fbits)
	switch {
	case e == 1<<ebits-1 && f != 0:
		return math.NaN()
	case e == 1<<ebits-1:
		return math.Inf(int(sign))
	case e == 0:
		return sign * math.Ldexp(f/one, 1-bias)
	}
	return sign * math.Ldexp(1+f/one, e-bias)
}

var formats = []struct {
	name         string
	ebits, fbits int
	from         func(uint16) float32
	to           func(float32) uint16
}{
	{"bf16", 8, 7, FromBF16, ToBF16},
	{"f16", 5, 10, FromF16, ToF16},
}

func TestEveryValue(t *testing.T) {
	for _, f := range formats {
		for i := range 1 << 16 {
			h := uint16(i)
			want, got := value(h, f.ebits, f.fbits), f.from(h)
			if want != want {
				quiet := uint16(1) << (f.fbits - 1)
				if got == got || f.to(got) != h|quiet {
					t.Fatalf("%s %#04x: NaN became %x, then %#04x", f.name, h, got, f.to(got))
				}
				if math.Float32bits(got)&0x400000 == 0 {
					t.Fatalf("%s %#04x: the NaN signals", f.name, h)
				}
				continue
			}
			if math.Float64bits(float64(got)) != math.Float64bits(want) {
				t.Fatalf("%s %#04x: got %x, want %x", f.name, h, got, want)
			}
			if back := f.to(got); back != h {
				t.Fatalf("%s %#04x: came back as %#04x", f.name, h, back)
			}
		}
	}
}

// TestRounding tries the float32 numbers around the middle between each two
// neighbours: below it they round down, above it up, on it to the even one.
func TestRounding(t *testing.T) {
	for _, f := range formats {
		inf := uint16(1<<f.ebits-1) << f.fbits
		for h := range inf {
			lo, hi := value(h, f.ebits, f.fbits), value(h+1, f.ebits, f.fbits)
			if h+1 == inf { // the number that would follow the largest
				hi = 2*lo - value(h-1, f.ebits, f.fbits)
			}
			mid := float32((lo + hi) / 2) // exact: one bit more than the format
			even := h + h&1
			for _, c := range []struct {
				x    float32
				want uint16
			}{
				{math.Nextafter32(mid, 0), h},
				{mid, even},
				{math.Nextafter32(mid, float32(math.Inf(1))), h + 1},
			} {
				if got := f.to(c.x); got != c.want {
					t.Fatalf("%s(%x): got %#04x, want %#04x", f.name, c.x, got, c.want)
				}
				if got := f.to(-c.x); got != c.want|0x8000 {
					t.Fatalf("%s(%x): got %#04x, want %#04x", f.name, -c.x, got, c.want|0x8000)
				}
			}
		}
		for _, x := range []float32{math.MaxFloat32, float32(math.Inf(1))} {
			if got := f.to(x); got != inf {
				t.Errorf("%s(%x): got %#04x, want Inf", f.name, x, got)
			}
		}
	}
}

func TestSlices(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for _, n := range []int{0, 1, 7, 64, 101} {
		x, u, v := make([]float32, n), make([]uint16, n), make([]uint16, n)
		for i := range u {
			u[i] = uint16(r.Uint32())
		}
		BF16ToF32(x, u)
		F32ToBF16(v, x)
		for i := range u {
			if math.Float32bits(x[i]) != math.Float32bits(FromBF16(u[i])) || v[i] != ToBF16(x[i]) {
				t.Fatalf("bf16 element %d of %d: %#04x, %x, %#04x", i, n, u[i], x[i], v[i])
			}
		}
		F16ToF32(x, u)
		F32ToF16(v, x)
		for i := range u {
			if math.Float32bits(x[i]) != math.Float32bits(FromF16(u[i])) || v[i] != ToF16(x[i]) {
				t.Fatalf("f16 element %d of %d: %#04x, %x, %#04x", i, n, u[i], x[i], v[i])
			}
		}
	}
}

func TestBytes(t *testing.T) {
	x := []float32{0, 1, -2, 0.5, 65504, float32(math.Inf(-1)), 0x1p-14}
	for _, d := range []DType{F64, F32, BF16, F16} {
		b, y := make([]byte, len(x)*d.Size()), make([]float32, len(x))
		if err := FromF32(b, d, x); err != nil {
			t.Fatal(err)
		}
		if err := ToF32(y, d, b); err != nil {
			t.Fatal(err)
		}
		for i := range x {
			want := x[i]
			if d == BF16 {
				want = FromBF16(ToBF16(want))
			}
			if y[i] != want {
				t.Errorf("%v: %v became %v", d, x[i], y[i])
			}
		}
		if err := ToF32(y, d, b[1:]); err == nil {
			t.Errorf("%v: no error for a byte too few", d)
		}
		if err := FromF32(append(b, 0), d, x); err == nil {
			t.Errorf("%v: no error for a byte too many", d)
		}
	}
	for _, d := range []DType{I32, I64, U8, Bool, 99} {
		if err := ToF32(nil, d, nil); err == nil {
			t.Errorf("%v: taken for a float", d)
		}
	}
}

func TestSafetensors(t *testing.T) {
	for d := range numDTypes {
		if got, ok := ParseSafetensors(d.Safetensors()); !ok || got != d {
			t.Errorf("%v: %q is read as %v, %v", d, d.Safetensors(), got, ok)
		}
	}
	for _, s := range []string{"", "?", "f32", "F8_E4M3", "U16"} {
		if got, ok := ParseSafetensors(s); ok {
			t.Errorf("%q is read as %v", s, got)
		}
	}
}

func BenchmarkConvert(b *testing.B) {
	const n = 4096
	x, u := make([]float32, n), make([]uint16, n)
	for i := range x {
		x[i] = float32(i) * 1.25e-3
	}
	for _, c := range []struct {
		name string
		run  func()
	}{
		{"F32ToBF16", func() { F32ToBF16(u, x) }},
		{"BF16ToF32", func() { BF16ToF32(x, u) }},
		{"F32ToF16", func() { F32ToF16(u, x) }},
		{"F16ToF32", func() { F16ToF32(x, u) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(6 * n)
			for b.Loop() {
				c.run()
			}
		})
	}
}

func ExampleToF32() {
	row := make([]float32, 2)
	fmt.Println(ToF32(row, BF16, []byte{0x80, 0x3f, 0x00, 0xc0}), row)
	// Output: <nil> [1 -2]
}

// TestOverflow: the number before it is finite in its type, and it is not.
func TestOverflow(t *testing.T) {
	for _, d := range []DType{F16, BF16} {
		least := d.Overflow()
		narrowed := func(v float32) float64 {
			b, x := make([]byte, 2), make([]float32, 1)
			if err := errors.Join(FromF32(b, d, []float32{v}), ToF32(x, d, b)); err != nil {
				t.Fatal(err)
			}
			return float64(x[0])
		}
		before := math.Nextafter32(least, 0)
		if !math.IsInf(narrowed(least), 1) || math.IsInf(narrowed(before), 1) {
			t.Errorf("%v: %v becomes %v, %v becomes %v", d, before, narrowed(before), least, narrowed(least))
		}
	}
	if v := F32.Overflow(); !math.IsInf(float64(v), 1) {
		t.Errorf("f32: got %v", v)
	}
}
