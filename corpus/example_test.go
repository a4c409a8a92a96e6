// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package corpus_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"pleach/corpus"
)

// Two texts become four files.
func Example() {
	dir, err := os.MkdirTemp("", "corpus")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	prose, table := filepath.Join(dir, "prose.txt"), filepath.Join(dir, "table.txt")
	if err := errors.Join(
		os.WriteFile(prose, bytes.Repeat([]byte("A line of general interest.\n"), 2000), 0o666),
		os.WriteFile(table, bytes.Repeat([]byte("a = [1, 2, 3]; b = {x: 4}\n"), 2000), 0o666),
	); err != nil {
		log.Fatal(err)
	}

	ctx := context.Background()
	c, err := corpus.Find(ctx, []string{prose, table})
	if err != nil {
		log.Fatal(err)
	}
	out := filepath.Join(dir, "text")
	got, err := c.Write(ctx, out, corpus.Quota{Train: 20_000, HeldOut: 2000})
	if err != nil {
		log.Fatal(err)
	}
	for side, name := range corpus.Sides() {
		fmt.Printf("%s is %s: %d bytes in %s, %d in %s\n", name, c.Names[side],
			got[side][0], corpus.FileName(side, false), got[side][1], corpus.FileName(side, true))
	}
	// Output:
	// general is prose.txt: 23856 bytes in general.jsonl, 3976 in general-heldout.jsonl
	// domain is table.txt: 23868 bytes in domain.jsonl, 3978 in domain-heldout.jsonl
}
