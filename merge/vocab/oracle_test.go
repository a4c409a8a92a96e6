// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package vocab

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"pleach/token"
)

// golden is testdata/cases.json: what mergekit makes of the tokenizers there.
type golden struct {
	Rows  map[string]int
	Cases []struct {
		Name   string
		Models []string
		Source string
		Base   string
		NoBase bool `json:"no_base"`
		Pad    int
		Tokens map[string]struct {
			Source any
			Force  bool
		}
		Size   int
		Vocab  map[string]int
		Added  map[string][]bool
		Matrix map[string][][]float32
	}
}

const width = 3

// embedding is that of the script that made the goldens.
func embedding(model, row, k int) float32 { return float32(64*model+row) + float32(k)/8 }

func storedRows(model, lo, hi int, dst []float32) error {
	for i := range dst {
		dst[i] = embedding(model, lo+i/width, i%width)
	}
	if len(dst) != (hi-lo)*width {
		return fmt.Errorf("rows %d to %d: a place for %d", lo, hi, len(dst))
	}
	return nil
}

func TestMergekit(t *testing.T) {
	b, err := os.ReadFile("testdata/cases.json")
	if err != nil {
		t.Fatal(err)
	}
	var g golden
	if err := json.Unmarshal(b, &g); err != nil {
		t.Fatal(err)
	}
	for _, c := range g.Cases {
		t.Run(c.Name, func(t *testing.T) {
			var models []Model
			var rows []int
			for _, name := range c.Models {
				models = append(models, Model{name, filepath.Join("testdata", name), g.Rows[name]})
				rows = append(rows, g.Rows[name])
			}
			o := Options{NoBase: c.NoBase, Pad: c.Pad, Base: max(0, slices.Index(c.Models, c.Base))}
			switch c.Source {
			case "union":
			case "base":
				o.Source.Kind = OfBase
			default:
				o.Source = Source{OfModel, slices.Index(c.Models, c.Source)}
			}
			for text, said := range c.Tokens {
				o.Tokens = append(o.Tokens, sayToken(t, c.Models, text, said.Source, said.Force))
			}
			v, err := Build(models, o)
			if err != nil {
				t.Fatal(err)
			}
			if v.Rows != c.Size || v.Tokens != len(c.Vocab) {
				t.Errorf("got %d rows, %d tokens; want %d, %d", v.Rows, v.Tokens, c.Size, len(c.Vocab))
			}
			sameVocabulary(t, v, c.Vocab, c.Added, c.Source == "union")
			byID := make([]string, len(c.Vocab))
			texts := slices.Sorted(func(yield func(string) bool) {
				for text := range c.Vocab {
					if !yield(text) {
						return
					}
				}
			})
			slices.SortFunc(texts, func(a, b string) int { return c.Vocab[a] - c.Vocab[b] })
			copy(byID, texts)
			for m, name := range c.Models {
				x, err := v.Matrix(m, width, rows, storedRows)
				if err != nil {
					t.Fatal(err)
				}
				got := make([]float32, v.Rows*width)
				if err := x.Read(0, len(got), got); err != nil {
					t.Fatal(err)
				}
				for i, want := range c.Matrix[name] {
					id, what, tol := v.Rows-1, "padding", 1e-6
					if i < len(byID) {
						id, what, tol = slices.Index(v.texts, byID[i]), byID[i], 0
					}
					for k, w := range want {
						if g := got[id*width+k]; math.Abs(float64(g-w)) > tol*math.Abs(float64(w)) {
							t.Errorf("%s: row of %q: element %d: got %v, want %v", name, what, k, g, w)
						}
					}
				}
			}
		})
	}
}

func sayToken(t *testing.T, models []string, text string, src any, force bool) Token {
	k := Token{Text: text, Force: force}
	switch s := src.(type) {
	case string:
		k.Kind, k.Model = FromModel, slices.Index(models, s)
	case map[string]any:
		if s["kind"] == "zero" {
			k.Kind = Zero
			break
		}
		k.Kind, k.Model = FromToken, slices.Index(models, s["model"].(string))
		if id, ok := s["token_id"].(float64); ok {
			k.ByID, k.ID = true, int(id)
		} else {
			k.Token = s["token"].(string)
		}
	default:
		t.Fatalf("token %q: source %v", text, src)
	}
	return k
}

// sameVocabulary compares tokens with those of mergekit: all ids, or the texts only
// where its new ids vary, and the added tokens with their settings.
func sameVocabulary(t *testing.T, v *Vocabulary, want map[string]int, added map[string][]bool, vary bool) {
	t.Helper()
	for text, id := range want {
		got := slices.Index(v.texts, text)
		if got < 0 || got != id && !vary {
			t.Errorf("token %q: got id %d, want %d", text, got, id)
		}
	}
	for id, text := range v.texts {
		if _, ok := want[text]; !ok && v.is[id] {
			t.Errorf("token %q: mergekit does not have it", text)
		}
	}
	out, err := newTokenizer(v.Files, "")
	if err != nil {
		t.Fatal(err)
	}
	for text, w := range added {
		i, ok := out.listed[text]
		if !ok {
			t.Errorf("token %q: want an added one", text)
			continue
		}
		f := out.list[i].flags
		if got := []bool{f.word, f.left, f.right, f.normalized, f.special}; !slices.Equal(got, w) {
			t.Errorf("added token %q: got %v, want %v", text, got, w)
		}
	}
	if len(out.list) != len(added) {
		t.Errorf("got %d added tokens, want %d", len(out.list), len(added))
	}
	dir := t.TempDir()
	for name, b := range v.Files {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	k, err := token.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	for id, text := range v.texts {
		if got, ok := k.ID(text); !ok || int(got) != id {
			t.Errorf("the files give %q the id %d, want %d", text, got, id)
		}
	}
}
