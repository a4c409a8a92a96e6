// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package method

import (
	"errors"
	"fmt"

	"pleach/internal/fault"
)

// orElse is the value of a name, or another if it is absent.
func (v Values) orElse(name string, absent float64) float64 {
	if x, ok := v[name]; ok {
		return x
	}
	return absent
}

// complain is a mistake of the configuration that shows at this tensor.
func (p *Problem) complain(method, format string, args ...any) error {
	return fault.Configf("merge: %s of %q: "+format, append([]any{method, p.Name}, args...)...)
}

// globalOf is a required parameter of the tensor.
func (p *Problem) globalOf(method, name string) (float64, error) {
	x, ok := p.Global[name]
	if !ok {
		return 0, p.complain(method, "parameter %s: got none, want a number", name)
	}
	return x, nil
}

// weightsOf are the weights of some inputs, in their order.
func (p *Problem) weightsOf(method string, inputs []int) ([]float64, error) {
	weights := make([]float64, len(inputs))
	var missing []error
	for i, k := range inputs {
		w, ok := p.Inputs[k].Params["weight"]
		switch {
		case ok:
			weights[i] = w
		case k == p.Base:
			missing = append(missing, p.complain(method,
				"weight of %s, an input because it is base_model: got none, want a weight among the "+
					"models, or no base_model", p.Inputs[k].Model))
		default:
			missing = append(missing, p.complain(method, "weight of %s: got none, want a number",
				p.Inputs[k].Model))
		}
	}
	return weights, errors.Join(missing...)
}

// everyInput are the indices of all inputs, the base included.
func (p *Problem) everyInput() []int {
	list := make([]int, len(p.Inputs))
	for i := range list {
		list[i] = i
	}
	return list
}

// needs says of every input whether it is one of a list, or the base.
func (p *Problem) needs(inputs []int, base int) []bool {
	need := make([]bool, len(p.Inputs))
	for _, k := range inputs {
		need[k] = true
	}
	if base >= 0 {
		need[base] = true
	}
	return need
}

// inventory is a count of inputs, for messages.
func (p *Problem) inventory() string {
	base := "no base"
	if p.Base >= 0 {
		base = "the base"
	}
	return fmt.Sprintf("%s and %d other models", base, len(p.Others()))
}
