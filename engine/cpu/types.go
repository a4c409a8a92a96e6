// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package cpu

import (
	"fmt"
	"strings"

	"pleach/half"
	"pleach/program"
)

// operands is the types that each kind is built for, read > written: f is
// float32, d is float64, n is either, i is an input of int32. A kind without
// them needs other ranks.
var operands = [program.Kinds]string{
	program.OpEmbed:           "fi>f",
	program.OpEmbedGrad:       "fif>f",
	program.OpLinear:          "ff>f",
	program.OpLinearGradX:     "ff>f",
	program.OpLinearGradW:     "fff>f",
	program.OpBias:            "ff>f",
	program.OpBiasGrad:        "ff>f",
	program.OpRMSNorm:         "ff>f",
	program.OpRMSNormGrad:     "ffff>ff",
	program.OpRoPE:            "fi>f",
	program.OpAttention:       "fi>ff",
	program.OpAttentionGrad:   "ffffi>f",
	program.OpCachedAttention: "ffii>ff",
	program.OpSwiGLU:          "f>f",
	program.OpSwiGLUGrad:      "ff>f",
	program.OpAdd:             "nn>n",
	program.OpScale:           "f>f",
	program.OpCast:            "n>n",
	program.OpHeadStats:       "ffi>f",
	program.OpHeadLoss:        "fid>ffd", // the tally may be missing
	program.OpHeadGrad:        "ffiff>ff",
	program.OpHeadTop:         "ff>f",
	program.OpTopMerge:        "ff>f",
	program.OpZero:            ">n",
	program.OpShard:           "n>n",
	program.OpSumSquares:      "fd>d",
	program.OpClip:            "dddd>d",
	program.OpAdamW:           "ffffddd>fff",
	program.OpAllReduce:       "n>n",
	program.OpAllGather:       "n>n",
	program.OpReduceScatter:   "n>n",
}

// checkOps refuses ops that this engine has no code for.
func checkOps(p *program.Program) error {
	for i, op := range p.Ops {
		if err := checkOp(op); err != nil {
			return fmt.Errorf("cpu: program %s op %d %v (%s): %w", p.Name, i, op.Kind, op.Where, err)
		}
	}
	return nil
}

func checkOp(op *program.Op) error {
	in, out, ok := strings.Cut(operands[op.Kind], ">")
	switch {
	case !ok:
		return fmt.Errorf("there is one rank")
	case op.Attr.Stochastic:
		return fmt.Errorf("stochastic rounding is not built yet")
	}
	if err := checkTypes(op.In, in); err != nil {
		return err
	}
	return checkTypes(op.Out, out)
}

func checkTypes(vs []*program.Value, want string) error {
	for i, v := range vs {
		ok := false
		switch want[i] {
		case 'f':
			ok = v.Type == half.F32
		case 'd':
			ok = v.Type == half.F64
		case 'n':
			ok = v.Type == half.F32 || v.Type == half.F64
		case 'i':
			ok = v.Type == half.I32 && v.Role == program.Input // else nobody has checked it
		}
		if !ok {
			return fmt.Errorf("%v %v: not built for this type", v.Role, v)
		}
	}
	return nil
}
