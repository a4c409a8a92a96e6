// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package method

// nearswapMethod moves a base a towards another model b where they are near.
//
//	w = clamp(1/max(|a − b|, 1e-6) · t, 0, 1);  y = w·b + (1−w)·a
//
// Float32, each operation rounded on its own, the reciprocal too, as in PyTorch. An
// optional tensor that only the base has is that of the base.
//
// alchemonaut, "QuartetAnemoi-70B-t0.0001", Hugging Face, 2024.
func nearswapMethod() *Method {
	return &Method{
		Name:      "nearswap",
		Reference: "https://huggingface.co/alchemonaut/QuartetAnemoi-70B-t0.0001",
		Global:    []Parameter{{Name: "t", Required: true}},
		Base:      BaseRequired,
		New:       newNearswap,
	}
}

func newNearswap(p Problem) (Job, error) {
	others := p.Others()
	if p.Base >= 0 && len(others) == 0 && p.Optional {
		return copyOf(p, p.Base), nil
	}
	if p.Base < 0 || len(others) != 1 {
		return nil, p.complain("nearswap", "inputs: got %s, want the base and one other model", p.inventory())
	}
	t, err := p.globalOf("nearswap", "t")
	if err != nil {
		return nil, err
	}
	return newEach(nil, 0, func(c *Chunk) { nearswap(c.Out, c.In[p.Base], c.In[others[0]], float32(t)) }), nil
}

// nearswap is the formula of [nearswapMethod] on slices of one length.
func nearswap(y, a, b []float32, t float32) {
	a, b = a[:len(y)], b[:len(y)]
	for i, u := range a {
		v := b[i]
		d := u - v
		d = max(d, -d, 1e-6)
		w := min(max(float32(float32(1/d)*t), 0), 1)
		y[i] = float32(w*v) + float32((1-w)*u)
	}
}
