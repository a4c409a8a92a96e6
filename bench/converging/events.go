// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"math"

	"pleach/track"
)

// bins is how many points a curve has: the loss is averaged over so many equal
// parts of a run.
const bins = 50

// firstBin is the first one after the warm-up.
var firstBin = int(math.Ceil(warmup * bins))

// result is what the events of a run say.
type result struct {
	last     int  // step
	finished bool // the last step was done, measured and saved

	loss       []float64 // nats per target, of each bin
	nats       float64   // per token of both held-out texts
	bits       float64   // per byte of them
	norm       float64   // the largest of the gradient after the warm-up
	weightNorm float64   // of the last step
	refused    int       // steps that changed nothing, as their gradient was not finite
	spikes     spikes
}

// spikes are those of the definition of package train.
type spikes struct {
	count, steps int // spikes, and steps that belong to one
	single       int // spikes of one step
}

// add counts those of one run with others.
func (s spikes) add(o spikes) spikes {
	return spikes{s.count + o.count, s.steps + o.steps, s.single + o.single}
}

// readEvents reads an events.jsonl. Of a step that is there twice, since the run
// was resumed from before it, the later line counts.
func readEvents(r io.Reader, set settings) (*result, error) {
	n := set.Steps
	loss, norm, length := make([]float64, n), make([]float64, n), make([]int, n+1)
	scores := map[string]track.Eval{}
	res := &result{}
	_, err := track.Read(r, func(rec track.Record) error {
		switch e := rec.Event.(type) {
		case track.Step:
			if e.Step < 1 || e.Step > int64(n) {
				return nil
			}
			i := e.Step - 1
			loss[i], norm[i], length[i] = e.LossNats, e.GradNorm, 0
			res.last, res.weightNorm = int(e.Step), e.WeightNorm
		case track.Spike:
			if e.Step >= 1 && e.Step <= int64(n) {
				length[e.Step-1] = e.Length
			}
		case track.Eval:
			if e.Step == int64(n) {
				scores[e.Name] = e
			}
		case track.End:
			res.finished = e.Step == int64(n) && e.ExitCode == 0
		}
		return nil
	})
	res.finished = res.finished && len(scores) > 0
	if err != nil || !res.finished {
		return res, err
	}
	res.loss = binned(loss)
	res.score(scores)
	for i, x := range norm {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			res.refused++
		} else if float64(i) >= warmup*float64(n) {
			res.norm = max(res.norm, x)
		}
	}
	res.spikes = count(length)
	return res, nil
}

// score puts the texts together, each with its weight in tokens.
func (r *result) score(scores map[string]track.Eval) {
	var nats, tokens, bytes float64
	for _, e := range scores {
		nats += e.NLLNats * float64(e.Tokens)
		tokens += float64(e.Tokens)
		bytes += float64(e.Bytes)
	}
	r.nats, r.bits = nats/tokens, nats/bytes/math.Ln2
}

// count counts spikes. length has, for each step, how many steps the spike that
// it belongs to has lasted, and a zero at its end.
func count(length []int) spikes {
	var s spikes
	for i, n := range length {
		if n > 0 {
			s.steps++
		}
		if n == 1 {
			s.count++
			if length[i+1] == 0 {
				s.single++
			}
		}
	}
	return s
}

// binned is the means of equal parts.
func binned(x []float64) []float64 {
	means := make([]float64, bins)
	for i := range means {
		from, to := i*len(x)/bins, (i+1)*len(x)/bins
		means[i] = summarize(x[from:to]).mean
	}
	return means
}

// summary is of the same number in several seeds.
type summary struct {
	n                  int
	mean, sd, min, max float64
}

// summarize computes mean, standard deviation (of a sample; 0 for one number)
// and range.
func summarize(x []float64) summary {
	s := summary{n: len(x), min: math.Inf(1), max: math.Inf(-1)}
	for _, v := range x {
		s.mean += v / float64(len(x))
		s.min, s.max = min(s.min, v), max(s.max, v)
	}
	for _, v := range x {
		s.sd += (v - s.mean) * (v - s.mean)
	}
	if len(x) > 1 {
		s.sd = math.Sqrt(s.sd / float64(len(x)-1))
	}
	return s
}

// largest is the largest distance from 0.
func (s summary) largest() float64 { return max(math.Abs(s.min), math.Abs(s.max)) }
