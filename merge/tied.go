// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"context"
	"crypto/sha256"
	"maps"
	"slices"
	"sync"

	"pleach/internal/strictjson"
)

// Tie decides about an lm_head that the configuration of the output says is the
// embedding. If the merged two are equal, byte for byte, it is left out; else it is
// written, tie_word_embeddings becomes false, and a warning says so. Both are merged
// once more to know, which only models that store what they need not cost. Chance must
// not come between them: they have the same random numbers.
func (p *Plan) Tie(ctx context.Context, lim Limits) error {
	head, embed := p.tied()
	if head < 0 || p.Options.Compat {
		return nil
	}
	p.Tensors[head].DrawAs = p.Tensors[embed].Name
	q := *p
	q.Tensors = []Tensor{p.Tensors[embed], p.Tensors[head]}
	s := &sums{parts: [2]map[int64][32]byte{{}, {}}}
	if slices.Equal(q.Tensors[0].Shape, q.Tensors[1].Shape) && q.Tensors[0].DType == q.Tensors[1].DType {
		if err := q.Run(ctx, s, lim, nil); err != nil {
			return err
		}
		if maps.Equal(s.parts[0], s.parts[1]) {
			p.Tensors = slices.Delete(p.Tensors, head, head+1)
			return nil
		}
	}
	p.Untied = true
	p.Warnings = append(p.Warnings, p.Tensors[head].Name+
		" is not what the embedding became: it is written, and tie_word_embeddings is set to false")
	return nil
}

// tied are the indices of an lm_head that the donor's configuration ties to the
// embedding, and of that; negative if there are none.
func (p *Plan) tied() (head, embed int) {
	if !ties(p.Models[p.Donor]) {
		return -1, -1
	}
	head = slices.IndexFunc(p.Tensors, func(t Tensor) bool { return t.Tied != "" })
	if head < 0 {
		return -1, -1
	}
	embed = slices.IndexFunc(p.Tensors, func(t Tensor) bool { return t.Name == p.Tensors[head].Tied })
	if embed < 0 {
		return -1, -1
	}
	return head, embed
}

// ties says that a model whose files have an lm_head is read without it, as the
// embedding.
func ties(m *Model) bool {
	v, there := m.Config.Lookup("tie_word_embeddings")
	if !there {
		a, ok := tableOf(classOf(m, m.Ref), m.Config)
		return ok && a.ties
	}
	return v.Kind == strictjson.True
}

// sums is a sink that keeps a hash of every block of two tensors. Tensors of one
// shape are cut into the same blocks.
type sums struct {
	mu    sync.Mutex
	parts [2]map[int64][32]byte
}

func (s *sums) Has(int) bool { return false }

func (s *sums) WriteAt(i int, b []byte, at int64) error {
	sum := sha256.Sum256(b)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parts[i][at] = sum
	return nil
}

func (s *sums) Done(int) error { return nil }
