// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package kernel

// Numbers is an array of float32 or of bf16 numbers: what products and attention
// read. One of the two is nil. The methods choose between the kernels of both.
type Numbers struct {
	F32  []float32
	BF16 []uint16
}

// Half says whether the numbers are of bf16.
func (x Numbers) Half() bool { return x.BF16 != nil }

// Len is how many numbers there are.
func (x Numbers) Len() int { return len(x.F32) + len(x.BF16) }

// From is the numbers from i on.
func (x Numbers) From(i int) Numbers {
	if x.Half() {
		return Numbers{BF16: x.BF16[i:]}
	}
	return Numbers{F32: x.F32[i:]}
}

// First is the first n numbers.
func (x Numbers) First(n int) Numbers {
	if x.Half() {
		return Numbers{BF16: x.BF16[:n]}
	}
	return Numbers{F32: x.F32[:n]}
}

// Load is numbers i … i+n−1 as float32: themselves, or their values in buf, which
// has at least n elements.
func (x Numbers) Load(l Level, buf []float32, i, n int) []float32 {
	if !x.Half() {
		return x.F32[i:][:n:n]
	}
	l.Widen(buf[:n], x.BF16[i:][:n])
	return buf[:n:n]
}

// Room is where to put numbers i … i+n−1 before Store: in their place, or in buf.
func (x Numbers) Room(buf []float32, i, n int) []float32 {
	if !x.Half() {
		return x.F32[i:][:n:n]
	}
	return buf[:n:n]
}

// Store rounds what is in a Room of numbers from i on into their place.
func (x Numbers) Store(l Level, room []float32, i int) {
	if x.Half() {
		l.Narrow(x.BF16[i:][:len(room)], room)
	}
}

// Round rounds y to what x could hold, in place.
func (x Numbers) Round(l Level, y []float32) {
	if x.Half() {
		l.Round(y, y)
	}
}

// Copy is x[i] = y[i], of one type.
func (x Numbers) Copy(y Numbers) {
	copy(x.F32, y.F32)
	copy(x.BF16, y.BF16)
}

// PanelLen is [Level.PanelLen] or PanelLen16.
func (x Numbers) PanelLen(l Level, n, k int) int {
	if x.Half() {
		return l.PanelLen16(n, k)
	}
	return l.PanelLen(n, k)
}

// PackNT is [Level.PackNT] or PackNT16.
func (x Numbers) PackNT(l Level, panels []float32, n, k, ld int) {
	if x.Half() {
		l.PackNT16(panels, x.BF16, n, k, ld)
	} else {
		l.PackNT(panels, x.F32, n, k, ld)
	}
}

// PackNN is [Level.PackNN] or PackNN16.
func (x Numbers) PackNN(l Level, panels []float32, n, k, ld int) {
	if x.Half() {
		l.PackNN16(panels, x.BF16, n, k, ld)
	} else {
		l.PackNN(panels, x.F32, n, k, ld)
	}
}

// MultiplyN is [Level.MultiplyN] or MultiplyN16 of the left operand x.
func (x Numbers) MultiplyN(l Level, c, panels []float32, m, n, k, ldc, ld int, acc bool, scratch []float32) {
	if x.Half() {
		l.MultiplyN16(c, x.BF16, panels, m, n, k, ldc, ld, acc, scratch)
	} else {
		l.MultiplyN(c, x.F32, panels, m, n, k, ldc, ld, acc)
	}
}

// MultiplyT is [Level.MultiplyT] or MultiplyT16 of the left operand x.
func (x Numbers) MultiplyT(l Level, c, panels []float32, m, n, k, ldc, ld int, acc bool, scratch []float32) {
	if x.Half() {
		l.MultiplyT16(c, x.BF16, panels, m, n, k, ldc, ld, acc, scratch)
	} else {
		l.MultiplyT(c, x.F32, panels, m, n, k, ldc, ld, acc)
	}
}

// GemmNT is [Level.GemmNT] or GemmNT16 of x and y, of one type.
func (x Numbers) GemmNT(l Level, c []float32, y Numbers, m, n, k, ldc, ldx, ldy int, acc bool, scratch []float32) {
	if x.Half() {
		l.GemmNT16(c, x.BF16, y.BF16, m, n, k, ldc, ldx, ldy, acc, scratch)
	} else {
		l.GemmNT(c, x.F32, y.F32, m, n, k, ldc, ldx, ldy, acc, scratch)
	}
}

// GemmNN is [Level.GemmNN] or GemmNN16 of x and y, of one type.
func (x Numbers) GemmNN(l Level, c []float32, y Numbers, m, n, k, ldc, ldx, ldy int, acc bool, scratch []float32) {
	if x.Half() {
		l.GemmNN16(c, x.BF16, y.BF16, m, n, k, ldc, ldx, ldy, acc, scratch)
	} else {
		l.GemmNN(c, x.F32, y.F32, m, n, k, ldc, ldx, ldy, acc, scratch)
	}
}

// GemmTN is [Level.GemmTN] or GemmTN16 of x and y, of one type.
func (x Numbers) GemmTN(l Level, c []float32, y Numbers, m, n, k, ldc, ldx, ldy int, acc bool, scratch []float32) {
	if x.Half() {
		l.GemmTN16(c, x.BF16, y.BF16, m, n, k, ldc, ldx, ldy, acc, scratch)
	} else {
		l.GemmTN(c, x.F32, y.F32, m, n, k, ldc, ldx, ldy, acc, scratch)
	}
}

// Embed is [Embed] from a table x to y, of one type.
func (x Numbers) Embed(y Numbers, ids []int32, D, first int) {
	if x.Half() {
		Embed(y.BF16, x.BF16, ids, D, first)
	} else {
		Embed(y.F32, x.F32, ids, D, first)
	}
}

// EmbedGrad is [Level.EmbedGrad] or EmbedGrad16 of the gradients x.
func (x Numbers) EmbedGrad(l Level, dt []float32, ids []int32, D, first, d0, d1 int) {
	if x.Half() {
		l.EmbedGrad16(dt, x.BF16, ids, D, first, d0, d1)
	} else {
		l.EmbedGrad(dt, x.F32, ids, D, first, d0, d1)
	}
}

// BiasGrad is [Level.BiasGrad] or BiasGrad16 of the gradients x.
func (x Numbers) BiasGrad(l Level, db []float32, o0, o1 int) {
	if x.Half() {
		l.BiasGrad16(db, x.BF16, o0, o1)
	} else {
		l.BiasGrad(db, x.F32, o0, o1)
	}
}

// RMSNormGradW is [Level.RMSNormGradW] or RMSNormGradW16 of the gradients x of what
// was made of y.
func (x Numbers) RMSNormGradW(l Level, dw []float32, y Numbers, r []float32, d0, d1 int) {
	if x.Half() {
		l.RMSNormGradW16(dw, x.BF16, y.BF16, r, d0, d1)
	} else {
		l.RMSNormGradW(dw, x.F32, y.F32, r, d0, d1)
	}
}
