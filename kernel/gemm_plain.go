// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package kernel

// The products of Portable.

const (
	plainK = 128 // rows of B, and
	plainN = 256 // columns of B that the loops keep in the second-level cache
)

// plain is c[i,j] (+)= Σ_p a[i·as+p·ap] · b[p,j] for a packed b.
func plain(c, a, panels []float32, m, n, k, ldc, as, ap int, acc bool) {
	b := packed{panels, n, k, plainN}
	for p := 0; p < k; p += plainK {
		plainBlock(c, a[p*ap:], b, m, n, p, min(plainK, k-p), ldc, as, ap, acc || p > 0)
	}
}

// plainBlock is Level.block.
func plainBlock(c, a []float32, b packed, m, n, p, d, ldc, as, ap int, acc bool) {
	if !acc {
		clearTile(c, m, n, ldc)
	}
	for j := 0; j < n; j += b.width {
		w := min(b.width, b.n-j)
		plainPanel(c[j:], a, b.panels[j*b.k+p*w:], m, min(b.width, n-j), d, ldc, as, ap, w)
	}
}

// plainPanel is c[i,j] += Σ_p a[i·as+p·ap] · b[p,j], for two rows of c and four
// of b at a time. The inner loops run along j, where neither sums depend on each
// other nor rows need to be gathered: measured, they do twice the work of a tile
// of dot products in the same time.
func plainPanel(c, a, b []float32, m, n, k, ldc, as, ap, ldb int) {
	i := 0
	for ; i+2 <= m; i += 2 {
		c0, c1 := c[i*ldc:][:n], c[(i+1)*ldc:][:n]
		p := 0
		for ; p+4 <= k; p += 4 {
			x, y := a[i*as+p*ap:], a[(i+1)*as+p*ap:]
			f := [8]float32{x[0], x[ap], x[2*ap], x[3*ap], y[0], y[ap], y[2*ap], y[3*ap]}
			d := b[p*ldb:]
			axpy24(c0, c1, &f, d[:n], d[ldb:][:n], d[2*ldb:][:n], d[3*ldb:][:n])
		}
		for ; p < k; p++ {
			axpy21(c0, c1, a[i*as+p*ap], a[(i+1)*as+p*ap], b[p*ldb:][:n])
		}
	}
	if i == m {
		return
	}
	c0, p := c[i*ldc:][:n], 0
	for ; p+4 <= k; p += 4 {
		x, d := a[i*as+p*ap:], b[p*ldb:]
		f := [4]float32{x[0], x[ap], x[2*ap], x[3*ap]}
		axpy14(c0, &f, d[:n], d[ldb:][:n], d[2*ldb:][:n], d[3*ldb:][:n])
	}
	for ; p < k; p++ {
		axpy11(c0, a[i*as+p*ap], b[p*ldb:][:n])
	}
}

// axpy24 adds four rows b, times f[0..3] to c and times f[4..7] to d.
func axpy24(c, d []float32, f *[8]float32, b0, b1, b2, b3 []float32) {
	d, b0, b1, b2, b3 = d[:len(c)], b0[:len(c)], b1[:len(c)], b2[:len(c)], b3[:len(c)]
	f0, f1, f2, f3 := f[0], f[1], f[2], f[3]
	g0, g1, g2, g3 := f[4], f[5], f[6], f[7]
	for j, s := range c {
		t, x := d[j], b0[j]
		s += float32(f0 * x)
		t += float32(g0 * x)
		x = b1[j]
		s += float32(f1 * x)
		t += float32(g1 * x)
		x = b2[j]
		s += float32(f2 * x)
		t += float32(g2 * x)
		x = b3[j]
		s += float32(f3 * x)
		t += float32(g3 * x)
		c[j], d[j] = s, t
	}
}

// axpy21 is c += f·b, d += g·b.
func axpy21(c, d []float32, f, g float32, b []float32) {
	d, b = d[:len(c)], b[:len(c)]
	for j, x := range b {
		c[j] += float32(f * x)
		d[j] += float32(g * x)
	}
}

// axpy14 adds four rows b, times f, to c.
func axpy14(c []float32, f *[4]float32, b0, b1, b2, b3 []float32) {
	b0, b1, b2, b3 = b0[:len(c)], b1[:len(c)], b2[:len(c)], b3[:len(c)]
	f0, f1, f2, f3 := f[0], f[1], f[2], f[3]
	for j, s := range c {
		s += float32(f0 * b0[j])
		s += float32(f1 * b1[j])
		s += float32(f2 * b2[j])
		s += float32(f3 * b3[j])
		c[j] = s
	}
}

// axpy11 is c += f·b.
func axpy11(c []float32, f float32, b []float32) {
	b = b[:len(c)]
	for j, x := range b {
		c[j] += float32(f * x)
	}
}

// plainDots is c[i,j] += Σ_p a[i,p] · b[j,p] for few rows, four columns at a time.
func plainDots(c, a, b []float32, m, n, k, ldc, lda, ldb int) {
	for i := range m {
		x, y := a[i*lda:][:k], c[i*ldc:][:n]
		j := 0
		for ; j+4 <= n; j += 4 {
			d := b[j*ldb:]
			dot4((*[4]float32)(y[j:]), x, d[:k], d[ldb:][:k], d[2*ldb:][:k], d[3*ldb:][:k])
		}
		for ; j < n; j++ {
			y[j] = dot(y[j], x, b[j*ldb:][:k])
		}
	}
}

// dot4 adds the products of x with four vectors to s.
func dot4(s *[4]float32, x, b0, b1, b2, b3 []float32) {
	b0, b1, b2, b3 = b0[:len(x)], b1[:len(x)], b2[:len(x)], b3[:len(x)]
	s0, s1, s2, s3 := s[0], s[1], s[2], s[3]
	for p, v := range x {
		s0 += float32(v * b0[p])
		s1 += float32(v * b1[p])
		s2 += float32(v * b2[p])
		s3 += float32(v * b3[p])
	}
	*s = [4]float32{s0, s1, s2, s3}
}

// dot is s + Σ_p x[p]·y[p].
func dot(s float32, x, y []float32) float32 {
	y = y[:len(x)]
	for p, v := range x {
		s += float32(v * y[p])
	}
	return s
}

// transpose is y[j,i] = x[i,j] for x of m rows and n columns, eight rows at a
// time.
func transpose(y, x []float32, m, n, ldy, ldx int) {
	i := 0
	for ; i+8 <= m; i += 8 {
		d := x[i*ldx:]
		x0, x1, x2, x3 := d[:n], d[ldx:][:n], d[2*ldx:][:n], d[3*ldx:][:n]
		x4, x5, x6, x7 := d[4*ldx:][:n], d[5*ldx:][:n], d[6*ldx:][:n], d[7*ldx:][:n]
		for j, v := range x0 {
			q := (*[8]float32)(y[j*ldy+i:])
			q[0], q[1], q[2], q[3] = v, x1[j], x2[j], x3[j]
			q[4], q[5], q[6], q[7] = x4[j], x5[j], x6[j], x7[j]
		}
	}
	for ; i < m; i++ {
		for j, v := range x[i*ldx:][:n] {
			y[j*ldy+i] = v
		}
	}
}

// copyTile is y[i,j] = x[i,j], for x of m rows and n columns, y without gaps.
func copyTile(y, x []float32, m, n, ldx int) {
	for i := range m {
		copy(y[i*n:][:n], x[i*ldx:][:n])
	}
}

// clearTile is c[i,j] = 0.
func clearTile(c []float32, m, n, ldc int) {
	for i := range m {
		clear(c[i*ldc:][:n])
	}
}
