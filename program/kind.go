// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package program

// Kind names an op. The set is closed: an engine implements all of it.
type Kind uint8

// The ops; each is defined where the builder's method of its name is.
const (
	OpEmbed Kind = iota
	OpEmbedGrad
	OpLinear
	OpLinearGradX
	OpLinearGradW
	OpBias
	OpBiasGrad
	OpRMSNorm
	OpRMSNormGrad
	OpRoPE
	OpAttention
	OpAttentionGrad
	OpCachedAttention
	OpSwiGLU
	OpSwiGLUGrad
	OpAdd
	OpScale
	OpCast
	OpHeadStats
	OpHeadLoss
	OpHeadGrad
	OpHeadTop
	OpTopMerge
	OpZero
	OpShard
	OpSumSquares
	OpClip
	OpAdamW
	OpAllReduce
	OpAllGather
	OpReduceScatter
	OpSend
	OpRecv
	numKinds
)

// Kinds is the number of op kinds: the length of every engine's table.
const Kinds = int(numKinds)

// info holds what is true for all ops of a kind: the printed name, whether the
// selective policy computes it again, and which temporaries may share memory.
type info struct {
	name  string
	cheap bool
	// over lists pairs {out, in}: the op may write output out over operand in,
	// if the operand dies there, because it reads every element of a row before
	// it writes that row, or reads and writes element by element. Kernels
	// honour exactly this list.
	over [][2]int
}

var infos = [numKinds]info{
	OpEmbed:           {name: "embed"},
	OpEmbedGrad:       {name: "embed.grad"},
	OpLinear:          {name: "linear"},
	OpLinearGradX:     {name: "linear.dx"},
	OpLinearGradW:     {name: "linear.dw"},
	OpBias:            {name: "bias", over: [][2]int{{0, 0}}},
	OpBiasGrad:        {name: "bias.grad"},
	OpRMSNorm:         {name: "rmsnorm", cheap: true, over: [][2]int{{0, 0}}},
	OpRMSNormGrad:     {name: "rmsnorm.grad", over: [][2]int{{0, 2}, {0, 0}}},
	OpRoPE:            {name: "rope", over: [][2]int{{0, 0}}},
	OpAttention:       {name: "attention"},
	OpAttentionGrad:   {name: "attention.grad"},
	OpCachedAttention: {name: "attention.cached"},
	OpSwiGLU:          {name: "swiglu", cheap: true},
	OpSwiGLUGrad:      {name: "swiglu.grad", over: [][2]int{{0, 0}}},
	OpAdd:             {name: "add", over: [][2]int{{0, 0}, {0, 1}}},
	OpScale:           {name: "scale", cheap: true, over: [][2]int{{0, 0}}},
	OpCast:            {name: "cast", cheap: true},
	OpHeadStats:       {name: "head.stats"},
	OpHeadLoss:        {name: "head.loss"},
	OpHeadGrad:        {name: "head.grad"},
	OpHeadTop:         {name: "head.top"},
	OpTopMerge:        {name: "top.merge"},
	OpZero:            {name: "zero"},
	OpShard:           {name: "shard"},
	OpSumSquares:      {name: "sum.squares"},
	OpClip:            {name: "clip"},
	OpAdamW:           {name: "adamw"},
	OpAllReduce:       {name: "all.reduce", over: [][2]int{{0, 0}}},
	OpAllGather:       {name: "all.gather", cheap: true},
	OpReduceScatter:   {name: "reduce.scatter"},
	OpSend:            {name: "send"},
	OpRecv:            {name: "recv"},
}

func (k Kind) String() string { return infos[k].name }

// FLOPs counts multiplications and additions of the matrix products and of
// attention, causal pairs of a whole row only; everything else is memory
// traffic and counts zero, as in the field's utilisation figures.
func (op *Op) FLOPs() int {
	n := op.tokens()
	switch h := op.Attr.Heads; op.Kind {
	case OpLinear, OpLinearGradX, OpHeadStats, OpHeadTop:
		return 2 * n * op.In[1].Len()
	case OpLinearGradW:
		return 2 * n * op.In[2].Len()
	case OpHeadGrad: // logits again, dx, dw
		return 6 * n * op.In[1].Len()
	case OpAttention: // q·k and p·v, N·(T+1)/2 pairs
		return 2 * n * (h.T + 1) * h.H * h.K
	case OpAttentionGrad: // q·k again, dp, dv, dq, dk
		return 5 * n * (h.T + 1) * h.H * h.K
	case OpCachedAttention: // a full cache
		return 4 * n * h.T * h.H * h.K
	}
	return 0
}

// tokens is the first dimension of the first operand.
func (op *Op) tokens() int {
	if len(op.In) == 0 {
		return 0
	}
	return op.In[0].Dim(0)
}

// Bytes is what the op reads and writes, each operand once.
func (op *Op) Bytes() int {
	n := 0
	for _, v := range op.In {
		n += v.Bytes()
	}
	for _, v := range op.Out {
		n += v.Bytes()
	}
	return n
}

// Wire is what one rank sends in a bandwidth-optimal collective over k ranks:
// (k−1)/k of the full value to scatter or gather it, twice that to all-reduce.
func (op *Op) Wire(m Mesh) int {
	k := m.Size(op.Attr.Axis)
	if op.Attr.Copies > 0 {
		k = op.Attr.Copies
	}
	switch op.Kind {
	case OpAllReduce:
		n := op.In[0].Len()
		if a := op.Attr; a.Hi > 0 {
			n = min(n, a.Hi-a.Lo) // of a shard: at most
		}
		return 2 * n * op.In[0].Type.Size() * (k - 1) / k
	case OpAllGather:
		return op.In[0].Bytes() * (k - 1)
	case OpReduceScatter:
		return op.In[0].Bytes() * (k - 1) / k
	case OpSend:
		return op.In[0].Bytes()
	}
	return 0
}
