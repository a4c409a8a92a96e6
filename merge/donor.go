// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"pleach/internal/fault"
	"pleach/internal/strictjson"
)

// Change is a new value of a key of a JSON file.
type Change struct {
	Key   string // with dots between the keys of objects in objects
	Value string // JSON
	// Existing leaves files alone that do not have the key.
	Existing bool
}

// patchConfig changes values of a JSON object. All else stays as it is written: keys
// that nobody knows, their order, the spelling of numbers, the indentation. A key
// that is not there comes last in its object.
//
// Of two changes of one key the last counts.
func patchConfig(file string, text []byte, set []Change) ([]byte, error) {
	root, err := parseObject(file, text)
	if err != nil {
		return nil, err
	}
	e := strictjson.Edit(string(text))
	if err := patch(e, root, set); err != nil {
		return nil, fault.Dataf("merge: %s: %w", file, err)
	}
	out := e.Text()
	if _, err := strictjson.Parse(out); err != nil {
		return nil, fmt.Errorf("merge: %s: after changes: %w", file, err)
	}
	return []byte(out), nil
}

// patch makes changes to an object, and to objects in it.
func patch(e *strictjson.Edits, object strictjson.Value, set []Change) error {
	var heads []string
	own, inner := map[string]Change{}, map[string][]Change{}
	for _, c := range set {
		head, rest, deep := strings.Cut(c.Key, ".")
		_, a := own[head]
		_, b := inner[head]
		if !a && !b {
			heads = append(heads, head)
		}
		if c.Key = head; deep {
			c.Key = rest
			inner[head] = append(inner[head], c)
			continue
		}
		own[head] = c
	}
	var add []string
	for _, head := range heads {
		v, there := object.Lookup(head)
		if list := inner[head]; list != nil {
			if _, both := own[head]; both {
				return fmt.Errorf("%s: changed as a whole and in part", head)
			}
			if v.Kind != strictjson.Object {
				if list = needed(list); len(list) == 0 {
					continue
				}
				return fmt.Errorf("%s: got %v, want an object with %s", head, v, list[0].Key)
			}
			if err := patch(e, v, list); err != nil {
				return fmt.Errorf("%s: %w", head, err)
			}
			continue
		}
		switch c := own[head]; {
		case there:
			e.Replace(v, c.Value)
		case !c.Existing:
			add = append(add, strictjson.Quote(head)+": "+c.Value)
		}
	}
	if len(add) > 0 {
		e.List(object, nil, add...)
	}
	return nil
}

// needed is the changes that are made whether their key is there or not.
func needed(set []Change) (list []Change) {
	for _, c := range set {
		if !c.Existing {
			list = append(list, c)
		}
	}
	return list
}

// parseObject parses a file whose value is an object.
func parseObject(file string, text []byte) (strictjson.Value, error) {
	v, err := strictjson.ParseFile(file, string(text))
	if err != nil {
		return v, fault.Dataf("merge: %w", err)
	}
	if v.Kind != strictjson.Object {
		return v, fault.Dataf("merge: %s: got %v, want an object", file, v)
	}
	return v, nil
}

// fileGeneration is the defaults of text generation, carried along with every
// output.
const fileGeneration = "generation_config.json"

// donated are the files that come from the donor, besides config.json, if the output
// gets no tokenizer of its own.
var donated = []string{
	fileTokenizerConfig, "special_tokens_map.json", "tokenizer.json", "tokenizer.model",
	"added_tokens.json", "merges.txt", "vocab.json", fileChatJinja, fileGeneration, fileChatJSON,
	"video_preprocessor_config.json",
}

// donorFiles are those files of a folder that are copied to the output.
//
// Differs: mergekit leaves vocab.json behind, without which merges.txt has no use.
func donorFiles(dir string) (names []string, err error) {
	for _, name := range donated {
		info, err := os.Stat(filepath.Join(dir, name))
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return nil, fault.Machinef("merge: %w", err)
		case info.Mode().IsRegular():
			names = append(names, name)
		}
	}
	return names, nil
}
