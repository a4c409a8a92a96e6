// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package kernel

// What follows a product of bf16 numbers in one pass: the product, in float32, is
// rounded to bf16, worked on and rounded again, as if the op after it had read it.

// fusedPiece is how many elements plain Go takes at a time.
const fusedPiece = 256

// AddNarrow is y[i] = z[i] + x[i], where z is rounded first. z and x have the length of
// y; y may be x.
func (l Level) AddNarrow(y []uint16, z []float32, x []uint16) {
	if l != Portable {
		eachAddNarrow(l, y, z, x)
		return
	}
	var a, b [fusedPiece]float32
	for len(y) > 0 {
		n := min(fusedPiece, len(y))
		l.Round(a[:n], z[:n])
		l.Widen(b[:n], x[:n])
		l.Add(a[:n], a[:n], b[:n])
		l.Narrow(y[:n], a[:n])
		y, z, x = y[n:], z[n:], x[n:]
	}
}

// SwiGLUNarrow is y[i] = SiLU(a[i])·u[i], where a and u are rounded first and, unless
// they are nil, kept in g and v. All have the length of y.
func (l Level) SwiGLUNarrow(g, v, y []uint16, a, u []float32) {
	switch {
	case l == Portable:
		l.plainSwiGLUNarrow(g, v, y, a, u)
	case g == nil:
		eachSwigluNarrow(l, y, a, u)
	default:
		eachSwigluKeep(l, g, v, y, a, u)
	}
}

func (l Level) plainSwiGLUNarrow(g, v, y []uint16, a, u []float32) {
	var x [2 * fusedPiece]float32
	var z [fusedPiece]float32
	for i := 0; i < len(y); i += fusedPiece {
		n := min(fusedPiece, len(y)-i)
		l.Round(x[:n], a[i:][:n])
		l.Round(x[n:2*n], u[i:][:n])
		if g != nil {
			l.Narrow(g[i:][:n], x[:n])
			l.Narrow(v[i:][:n], x[n:2*n])
		}
		l.SwiGLU(z[:n], x[:2*n], n)
		l.Narrow(y[i:][:n], z[:n])
	}
}

// SwiGLUGradNarrow is SwiGLUGrad of one row, with the gradients of a and u in d and e;
// dy is rounded first. All have the length of d, which may be a, and e may be u.
func (l Level) SwiGLUGradNarrow(d, e []uint16, dy []float32, a, u []uint16) {
	if l != Portable {
		eachSwigluGradNarrow(l, d, e, dy, a, u)
		return
	}
	var x [2 * fusedPiece]float32
	var g [fusedPiece]float32
	for i := 0; i < len(d); i += fusedPiece {
		n := min(fusedPiece, len(d)-i)
		l.Round(g[:n], dy[i:][:n])
		l.Widen(x[:n], a[i:][:n])
		l.Widen(x[n:2*n], u[i:][:n])
		l.SwiGLUGrad(x[:2*n], g[:n], x[:2*n], n)
		l.Narrow(d[i:][:n], x[:n])
		l.Narrow(e[i:][:n], x[n:2*n])
	}
}
