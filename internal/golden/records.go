// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package golden

import (
	"encoding/json"
	"fmt"
)

// Row is a line of rows.jsonl: ids, and in some training cases a mask of the
// same length in which 1 says that the id counts as a target.
type Row struct {
	Tokens []int32 `json:"tokens"`
	Mask   []int8  `json:"mask"`
}

// Score is a line of score/<case>/want.jsonl, for the row of the same line, all
// of it in nats.
//
// LogProbs are those of ids 2…N and NLL is their negated sum, as transformers
// computes them with its model in float64, where RMSNorm and the rotary tables
// stay in float32. Exact is LogProbs with these in float64 too: what an oracle
// in float64 has to agree with. Top holds the five best ids after each of the
// positions 1…N, best first, the lowest id first among equals.
type Score struct {
	LogProbs []float64  `json:"logprobs"`
	NLL      float64    `json:"nll"`
	Top      [][]Choice `json:"top"`
	Exact    []float64  `json:"logprobs64"`
}

// Choice is an id and its log-probability; in JSON the list [id, logprob].
type Choice struct {
	ID      int32
	LogProb float64
}

// UnmarshalJSON reads [id, logprob].
func (c *Choice) UnmarshalJSON(text []byte) error {
	var pair []json.RawMessage
	if err := json.Unmarshal(text, &pair); err != nil {
		return err
	}
	if len(pair) != 2 {
		return fmt.Errorf("golden: a choice: got %d values, want [id, logprob]", len(pair))
	}
	if err := json.Unmarshal(pair[0], &c.ID); err != nil {
		return err
	}
	return json.Unmarshal(pair[1], &c.LogProb)
}

// Step is a line of train/<case>/want.jsonl. Loss (nats a target) and GradNorm
// are those before the update and before clipping, in a loop in float32; the
// fields that end in 64 are of the same loop in float64. Targets is the count
// of unmasked targets of the step.
type Step struct {
	Step       int     `json:"step"`
	Loss       float64 `json:"loss"`
	GradNorm   float64 `json:"grad_norm"`
	LR         float64 `json:"lr"`
	Targets    int     `json:"targets"`
	Loss64     float64 `json:"loss64"`
	GradNorm64 float64 `json:"grad_norm64"`
}

// Sum is what train/<case>/final.json says of a parameter after the last step,
// summed in float64: Σx and Σx², in the float32 and in the float64 loop.
type Sum struct {
	Sum     float64 `json:"sum"`
	SumSq   float64 `json:"sumsq"`
	Sum64   float64 `json:"sum64"`
	SumSq64 float64 `json:"sumsq64"`
}

// Generation is a file of generate: greedy continuations by the model of the
// folder Model of testdata.
type Generation struct {
	Model   string   `json:"model"`
	Prompts []Prompt `json:"prompts"`
}

// Prompt is a list of ids and its greedy continuation. Margin is the least
// difference, in nats, between the best and the second choice on the way.
type Prompt struct {
	IDs    []int32 `json:"prompt"`
	Want   []int32 `json:"want"`
	Margin float64 `json:"margin"`
}

// Perplexity is perplexity.json: documents of ids scored in rolling windows of
// Sequence inputs, the first id after BOS. NLL is the sum of nats of each
// document, NLL64 the same in float64 throughout (see [Score]). Windows are the
// windows of each document: inputs, and how many ids at its end are scored.
// Perplexity is exp(ΣNLL / Tokens).
type Perplexity struct {
	Model      string     `json:"model"`
	Sequence   int        `json:"sequence"`
	BOS        int32      `json:"bos"`
	Documents  [][]int32  `json:"documents"`
	Windows    [][][2]int `json:"windows"`
	NLL        []float64  `json:"nll"`
	NLL64      []float64  `json:"nll64"`
	Tokens     int        `json:"tokens"`
	Perplexity float64    `json:"perplexity"`
}

// Meaning is what a file of accept means, in the dimension letters of the tree.
// Factor, Low, High and Original are those of the scaling, zero where it has
// none.
type Meaning struct {
	V             int     `json:"V"`
	D             int     `json:"D"`
	F             int     `json:"F"`
	L             int     `json:"L"`
	H             int     `json:"H"`
	G             int     `json:"G"`
	K             int     `json:"K"`
	Eps           float64 `json:"eps"`
	Theta         float64 `json:"theta"`
	Rope          string  `json:"rope"`
	Factor        float64 `json:"factor"`
	Low           float64 `json:"low"`
	High          float64 `json:"high"`
	Original      int     `json:"original"`
	Tied          bool    `json:"tied"`
	AttentionBias bool    `json:"attention_bias"`
	MLPBias       bool    `json:"mlp_bias"`
	DType         string  `json:"dtype"`
	EOS           []int32 `json:"eos"`
}
