// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package data_test

import (
	"fmt"
	"os"
	"path/filepath"

	"pleach/data"
)

// letters is an encoder of the simplest kind: an id is a byte.
type letters struct{}

func (letters) Encode(dst []int32, text []byte) []int32 {
	for _, c := range text {
		dst = append(dst, int32(c-'a'))
	}
	return dst
}

func Example() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	lines := `{"id":"one","text":"abc"}` + "\n" + `{"id":"two","text":"de"}`
	if err := os.WriteFile(filepath.Join(dir, "a.jsonl"), []byte(lines), 0o666); err != nil {
		panic(err)
	}
	l, err := data.Open(data.Spec{
		Sequence: 4, Lanes: 1, Shuffle: "none", EOS: 26,
		Sources: []data.Source{{Paths: []string{dir}, ID: "id"}},
	}, letters{})
	if err != nil {
		panic(err)
	}
	defer l.Close()
	rows, err := l.Next(2)
	if err != nil {
		panic(err)
	}
	for _, r := range rows {
		fmt.Println("ids", r.IDs, "labels", r.Labels, "positions", r.Positions)
		for _, d := range r.Docs {
			fmt.Printf("  %s from %d to %d\n", d.ID, d.From, d.To)
		}
	}
	fmt.Println("served:", l.State().Rows)
	// Output:
	// ids [3 4 26 0 1] labels [4 26 -1 1] positions [0 1 2 0]
	//   two from 0 to 3
	//   one from 3 to 5
	// ids [1 2 26 0 1] labels [2 26 -1 1] positions [0 1 2 0]
	//   one from 0 to 3
	//   one from 3 to 5
	// served: 2
}
