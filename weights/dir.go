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

// The names of a Hugging Face model directory.
const (
	single = "model.safetensors"
	index  = "model.safetensors.index.json"
)

// OpenDir opens the weights of a Hugging Face model directory: one
// model.safetensors, or the shards that model.safetensors.index.json lists. The
// index and the headers of the shards must agree on every tensor.
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
	switch {
	case has[index]:
		return openShards(at, has[single])
	case has[single]:
		return OpenFiles(at, single)
	}
	return nil, fault.Dataf("weights: %s: want %s or %s: %w%s",
		s.Path(dir), single, index, fs.ErrNotExist, instead(es))
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

func openShards(s blob.Store, hasSingle bool) (*Set, error) {
	files, err := readIndex(s)
	if err != nil {
		return nil, err
	}
	names := slices.Compact(slices.Sorted(maps.Values(files)))
	if hasSingle && !slices.Contains(names, single) {
		return nil, fault.Dataf("weights: %s: both %s and %s, which does not list it: which is the model?",
			s.Path("."), single, index)
	}
	set, err := OpenFiles(s, names...)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fault.Dataf("weights: %s lists a shard that is missing: %w", s.Path(index), err)
		}
		return nil, err
	}
	if err := set.agree(s.Path(index), files); err != nil {
		_ = set.Close()
		return nil, err
	}
	return set, nil
}

// readIndex gives the file of each tensor.
func readIndex(s blob.Store) (map[string]string, error) {
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
