// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package weights_test

import (
	"io"
	"strings"
	"testing"

	"pleach/half"
	"pleach/weights"
)

// TestDifferences has an entry for each "Differs:" of the package.
func TestDifferences(t *testing.T) {
	const a = `"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}`
	for _, c := range []struct{ header, theirs, ours, reason string }{
		{
			`{` + a + `,` + a + `}`, "the last of two equal keys counts", `key "a" stands twice`,
			"one of two tensors would be lost without a word",
		},
		{
			`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"scale":2}}`, "ignored", `unknown key "scale"`,
			"a key that is not understood may change what the bytes mean",
		},
	} {
		s := mem(t, map[string]string{"model.safetensors": file(c.header, 1)})
		if _, err := weights.Open(s, "."); err == nil || !strings.Contains(err.Error(), c.ours) {
			t.Errorf("%s: theirs: %s; got %v, want %s, because %s", c.header, c.theirs, err, c.ours, c.reason)
		}
	}
	// torch.load runs what a pickle calls, and gives values that are no tensors.
	for name, ours := range map[string]string{"call": `"posix.system"`, "number": "want a tensor"} {
		s := mem(t, map[string]string{"pytorch_model.bin": golden(t, "torch/"+name+".bin")})
		if _, err := weights.Open(s, "."); err == nil || !strings.Contains(err.Error(), ours) {
			t.Errorf("%s: got %v, want %s", name, err, ours)
		}
	}
	// Theirs sorts; ours keeps the order, so that a model lies as its program
	// reads it.
	zero := func(_, _ int, dst []float32) error { clear(dst); return nil }
	p, err := weights.NewPlan("m", 0, []weights.Source{
		{Name: "b", DType: half.BF16, Shape: []int{1}, Read: zero},
		{Name: "a", DType: half.F32, Shape: []int{1}, Read: zero},
	})
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	err = p.Write("", func(_ string, fill func(io.Writer) error) error { return fill(&out) })
	if b, a := strings.Index(out.String(), `"b"`), strings.Index(out.String(), `"a"`); err != nil || b < 0 || a < b {
		t.Errorf("%v: the order was not kept: %q", err, out.String())
	}
}
