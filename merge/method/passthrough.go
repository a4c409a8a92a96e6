// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package method

// passthroughMethod is its one input, times a scale if there is one, in float32.
//
//	y = scale·x
func passthroughMethod() *Method {
	return &Method{
		Name:     "passthrough",
		PerModel: []Parameter{{Name: "scale", Nullable: true}},
		Base:     BaseInput,
		New:      newPassthrough,
	}
}

func newPassthrough(p Problem) (Job, error) {
	if len(p.Inputs) != 1 {
		var names []string
		for _, in := range p.Inputs {
			names = append(names, in.Model)
		}
		return nil, p.complain("passthrough", "inputs: got %d %q, want one (a base_model that is no source is "+
			"an input too)", len(names), names)
	}
	scale, ok := p.Inputs[0].Params["scale"]
	if !ok {
		return copyOf(p, 0), nil
	}
	return newEach(nil, 0, func(c *Chunk) { p.Level.Scale(c.Out, c.In[0], float32(scale)) }), nil
}
