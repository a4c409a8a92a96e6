// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package method

// linearMethod is a weighted sum or mean of all inputs, the base included.
//
//	y = (Σ w_i·x_i) / Σ w_i, or not divided
//
// Float32: each product, each sum in the order of the inputs, the division. Weights are
// rounded to float32 and summed in float32. A sum of weights of 0 is an error.
//
// Wortsman et al., "Model soups", 2022, arXiv:2203.05482.
//
// Differs: mergekit 0.1.5 leaves it to the processor whether a product is rounded
// before it is added.
func linearMethod() *Method {
	return &Method{
		Name:      "linear",
		Reference: "arXiv:2203.05482",
		Global:    []Parameter{{Name: "normalize", Default: 1}},
		PerModel:  []Parameter{{Name: "weight", Required: true}},
		Base:      BaseInput,
		Crops:     CropCommon,
		New:       newLinear,
	}
}

func newLinear(p Problem) (Job, error) {
	if len(p.Inputs) == 0 {
		return nil, p.complain("linear", "got no models, want at least one")
	}
	all := p.everyInput()
	wide, err := p.weightsOf("linear", all)
	if err != nil {
		return nil, err
	}
	weights, sum := narrowWeights(wide)
	if p.Global.orElse("normalize", 1) == 0 {
		sum = 1 // dividing by it changes nothing
	}
	if sum == 0 {
		return nil, p.complain("linear", "weights to divide by: got %v, whose sum is 0, want another sum, "+
			"or normalize: false", wide)
	}
	return newEach(nil, 0, func(c *Chunk) {
		clear(c.Out) // and not the first product: 0 and −0 are 0
		for k, x := range c.In {
			p.Level.AddScaled(c.Out, x, weights[k])
		}
		if sum != 1 {
			p.Level.Divide(c.Out, c.Out, sum)
		}
	}), nil
}

// narrowWeights are weights in float32, and their sum in float32.
func narrowWeights(wide []float64) (narrow []float32, sum float32) {
	for _, w := range wide {
		narrow = append(narrow, float32(w))
		sum += float32(w)
	}
	return narrow, sum
}
