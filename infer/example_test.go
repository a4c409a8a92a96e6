// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package infer_test

import (
	"context"
	"fmt"

	"pleach/engine/cpu"
	"pleach/half"
	"pleach/infer"
	"pleach/model"
	"pleach/program"
)

// Example scores two documents in one run of a model whose weights are all zero,
// so that each of its 16 words is as probable as the others.
func Example() {
	spec, err := model.Preset("tiny", 16)
	if err != nil {
		fmt.Println(err)
		return
	}
	layout := program.Layout{Compute: half.F32, Sum: half.F32}
	e := cpu.New(cpu.Options{Threads: 1})
	defer e.Close()
	s, err := infer.NewScorer(e, spec, layout, model.Batch{B: 1, T: 32}, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	segments := func(yield func(infer.Segment) bool) {
		_ = yield(infer.Whole([]int32{1, 2, 3})) && yield(infer.Whole([]int32{9, 8}))
	}
	err = s.Score(segments, func(i int, r infer.Scored) error {
		fmt.Printf("%d %.4f\n", i, r.Loss)
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}
	g, err := infer.NewGenerator(e, spec, layout, 32, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	ids, err := g.Generate(context.Background(), []int32{3}, 4, infer.Sampling{}, nil, nil)
	fmt.Println(ids, err)
	// Output:
	// 0 [2.7726 2.7726 0.0000]
	// 1 [2.7726 0.0000]
	// [0 0 0 0] <nil>
}
