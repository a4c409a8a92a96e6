// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"pleach/data"
	"pleach/internal/fault"
)

// filesName lists the files of a run's corpus, a JSON object a line, so that a
// change can be named when the run goes on.
const filesName = "files.jsonl"

// corpusChanged begins the warning of a run that goes on with another corpus.
const corpusChanged = "the corpus has changed since the run began: "

// changes says how the files of the corpus differ from those that the run directory
// has a list of, in words; "" if they do not, or if there is no list.
func (p *prepared) changes() (string, error) {
	was, err := readFiles(p.recipe.Out)
	if err != nil || len(was) == 0 {
		return "", err
	}
	changes := data.Changes(was, p.loader.Files())
	const most = 10
	if more := len(changes) - most; more > 0 {
		changes = append(changes[:most], "and "+amount(float64(more))+" more")
	}
	return strings.Join(changes, "; "), nil
}

// checkFiles refuses to go on with another corpus, unless that is accepted; then it
// warns.
func (p *prepared) checkFiles(accept bool) error {
	what, err := p.changes()
	if err != nil || what == "" {
		return err
	}
	if !accept {
		return fault.Statef("run directory %s: the corpus has changed since the run began: %s; "+
			"what follows would not be what would have followed: --accept-changed-data goes on with it", p.recipe.Out, what)
	}
	p.loader.AcceptChanged()
	p.warnings = append(p.warnings, corpusChanged+what)
	return nil
}

// readFiles reads the list of a run directory; nothing if it has none.
func readFiles(dir string) ([]data.FilePrint, error) {
	b, err := os.ReadFile(filepath.Join(dir, filesName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.Machinef("run directory: %w", err)
	}
	var list []data.FilePrint
	for d := json.NewDecoder(bytes.NewReader(b)); d.More(); {
		var f data.FilePrint
		if err := d.Decode(&f); err != nil {
			return nil, fault.Statef("run directory: %s: %w", filepath.Join(dir, filesName), err)
		}
		list = append(list, f)
	}
	return list, nil
}

// keepFiles writes the list for when the run goes on.
func (p *prepared) keepFiles() error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	for _, f := range p.loader.Files() {
		if err := e.Encode(f); err != nil {
			return err
		}
	}
	return writeFile(p.recipe.Out, filesName, b.Bytes())
}
