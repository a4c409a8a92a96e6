// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package cpu

import (
	"fmt"
	"strings"

	"pleach/half"
	"pleach/program"
)

// operands is the types that each kind is built for, read > written: c is what the
// op computes with, float32 or bf16, the same for all of them; w is weights of c, or of int8 where c is
// bf16, with their scales as the last operand, which others lack; f is float32, d is
// float64, s is float32 or bf16, n is any of the three, i is an input of int32. A
// kind without them needs other ranks.
var operands = [program.Kinds]string{
	program.OpEmbed:           "ci>c",
	program.OpEmbedGrad:       "cif>f",
	program.OpLinear:          "cwf>s",
	program.OpLinearGradX:     "cc>c",
	program.OpLinearGradW:     "ccf>f",
	program.OpBias:            "cc>c",
	program.OpBiasGrad:        "cf>f",
	program.OpRMSNorm:         "cc>c",
	program.OpRMSNormGrad:     "cccf>cf",
	program.OpRoPE:            "ci>c",
	program.OpAttention:       "ci>cf",
	program.OpAttentionGrad:   "ccfci>c",
	program.OpCachedAttention: "ccii>cc",
	program.OpSwiGLU:          "c>c",
	program.OpSwiGLUGrad:      "cc>c",
	program.OpAdd:             "nn>n",
	program.OpScale:           "c>c",
	program.OpCast:            "n>n",
	program.OpHeadStats:       "cwif>f",
	program.OpHeadLoss:        "fid>ffd", // the tally may be missing
	program.OpHeadGrad:        "cciff>cf",
	program.OpHeadTop:         "cwf>f",
	program.OpTopMerge:        "ff>f",
	program.OpZero:            ">n",
	program.OpShard:           "n>n",
	program.OpSumSquares:      "sd>d",
	program.OpClip:            "dddd>d",
	program.OpAdamW:           "sssfddd>sss",
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
	if !ok {
		return fmt.Errorf("there is one rank")
	}
	computes := half.F32
	if len(in) > 0 && in[0] == 'c' {
		computes = op.In[0].Type
	}
	if err := checkTypes(op.In, in, computes); err != nil {
		return err
	}
	return checkTypes(op.Out, out, computes)
}

func checkTypes(vs []*program.Value, want string, computes half.DType) error {
	for i, v := range vs {
		short := v.Type == half.F32 || v.Type == half.BF16
		ok := false
		switch want[i] {
		case 'c':
			ok = short && v.Type == computes
		case 'w':
			ok = short && v.Type == computes || v.Type == half.I8 && computes == half.BF16
		case 'f':
			ok = v.Type == half.F32
		case 'd':
			ok = v.Type == half.F64
		case 's':
			ok = short
		case 'n':
			ok = short || v.Type == half.F64
		case 'i':
			ok = v.Type == half.I32 && v.Role == program.Input // else nobody has checked it
		}
		if !ok {
			return fmt.Errorf("%v %v: not built for this type", v.Role, v)
		}
	}
	return nil
}
