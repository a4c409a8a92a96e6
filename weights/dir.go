// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package weights

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"pleach/blob"
	"pleach/internal/fault"
	"pleach/internal/strictjson"
)

// layout is the names of a Hugging Face model directory: of a file with all weights,
// or of the index that lists its shards.
type layout struct{ single, index string }

// layouts are those that are read, in the order in which they are looked for.
var layouts = []layout{
	{"model.safetensors", "model.safetensors.index.json"},
	{"pytorch_model.bin", "pytorch_model.bin.index.json"},
}

// OpenDir opens the weights of a Hugging Face model directory: one
// model.safetensors, or the shards that model.safetensors.index.json lists. The
// index and the headers of the shards must agree on every tensor. Where there are
// none of these, pytorch_model.bin and its index are read.
func OpenDir(dir string) (*Set, error) { return Open(blob.Local(dir), ".") }

// Open is [OpenDir] for a folder of a store.
func Open(s blob.Store, dir string) (*Set, error) {
	es, err := s.List(dir)
	if err != nil {
		return nil, fmt.Errorf("weights: %w", err)
	}
	has := map[string]bool{}
	for _, e := range es {
		has[e.Name] = !e.Dir
	}
	at := sub{s, dir}
	for _, l := range layouts {
		switch {
		case has[l.index]:
			return openShards(at, l, has[l.single])
		case has[l.single]:
			return OpenFiles(at, l.single)
		}
	}
	return nil, fault.Dataf("weights: %s: want %s or %s, or %s or %s: %w%s",
		s.Path(dir), layouts[0].single, layouts[0].index, layouts[1].single, layouts[1].index,
		fs.ErrNotExist, instead(es))
}

// instead says which weights there are that cannot be read.
func instead(es []blob.Entry) string {
	for _, e := range es {
		switch path.Ext(e.Name) {
		case ".safetensors", ".bin", ".pth", ".pt", ".gguf":
			return fmt.Sprintf(" (there is %s)", e.Name)
		}
	}
	return ""
}

func openShards(s blob.Store, l layout, hasSingle bool) (*Set, error) {
	files, err := readIndex(s, l.index)
	if err != nil {
		return nil, err
	}
	names := slices.Compact(slices.Sorted(maps.Values(files)))
	if hasSingle && !slices.Contains(names, l.single) {
		return nil, fault.Dataf("weights: %s: both %s and %s, which does not list it: which is the model?",
			s.Path("."), l.single, l.index)
	}
	set, err := OpenFiles(s, names...)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fault.Dataf("weights: %s lists a shard that is missing: %w", s.Path(l.index), err)
		}
		return nil, err
	}
	if err := set.agree(s.Path(l.index), files); err != nil {
		_ = set.Close()
		return nil, err
	}
	return set, nil
}

// readIndex gives the file of each tensor.
func readIndex(s blob.Store, index string) (map[string]string, error) {
	file := s.Path(index)
	b, err := blob.ReadFile(s, index, headerLimit)
	if err != nil {
		return nil, fmt.Errorf("weights: %w", err)
	}
	root, err := strictjson.ParseFile(file, string(b))
	if err != nil {
		return nil, fault.Dataf("weights: %w", err)
	}
	list, _ := root.Lookup("weight_map")
	if list.Kind != strictjson.Object || len(list.Kids) == 0 {
		return nil, fault.Dataf("weights: %s: want an object weight_map that names the file of each tensor",
			file)
	}
	files := make(map[string]string, len(list.Kids)/2)
	for t, v := range list.Fields() {
		f := v.Text
		if v.Kind != strictjson.String || !fs.ValidPath(f) || strings.ContainsAny(f, `/\`) || f == "." {
			return nil, fault.Dataf("weights: %s: tensor %q: got %v, "+
				"want the name of a file beside the index", file, t, v)
		}
		files[t] = f
	}
	return files, nil
}

// agree checks that the shards hold what the index says, in both directions.
func (s *Set) agree(index string, files map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		t, ok := s.Lookup(name)
		if !ok || t.File != files[name] {
			return fault.Dataf("weights: %s: tensor %q: is not in %s", index, name, files[name])
		}
	}
	for _, t := range s.tensors {
		if _, ok := files[t.Name]; !ok {
			return fault.Dataf("weights: %s: tensor %q of %s is not listed", index, t.Name, t.File)
		}
	}
	return nil
}

// sub is a folder of a store; names of files in it are plain.
type sub struct {
	blob.Store
	dir string
}

func (s sub) Open(name string) (blob.Reader, error) { return s.Store.Open(path.Join(s.dir, name)) }
func (s sub) Path(name string) string               { return s.Store.Path(path.Join(s.dir, name)) }
