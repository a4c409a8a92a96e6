// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

// Command parquetgo writes fixtures with parquet-go; make.py calls it. It is a
// module of its own, so that the program does not depend on parquet-go.
package main

import (
	"encoding/json"
	"log"
	"os"
	"path/filepath"

	"github.com/parquet-go/parquet-go"
)

type row struct {
	Text *string `json:"text" parquet:"text,optional,zstd"`
	N    int64   `json:"n" parquet:"n,delta"`
	IDs  []int64 `json:"ids" parquet:"ids,optional,list"`
	Meta struct {
		ID *string `json:"id" parquet:"id,optional,dict,snappy"`
	} `json:"meta" parquet:"meta"`
}

func main() {
	var rows []row
	check(json.NewDecoder(os.Stdin).Decode(&rows))
	write("parquet-go-v1.parquet", rows, 80, parquet.DataPageVersion(1))
	write("parquet-go-v2.parquet", rows, len(rows), parquet.DataPageVersion(2))
}

func write(name string, rows []row, group int, version parquet.WriterOption) {
	f, err := os.Create(filepath.Join(os.Args[1], name))
	check(err)
	w := parquet.NewGenericWriter[row](f, version, parquet.PageBufferSize(512))
	for len(rows) > 0 {
		n := min(group, len(rows))
		_, err := w.Write(rows[:n])
		check(err)
		check(w.Flush())
		rows = rows[n:]
	}
	check(w.Close())
	check(f.Close())
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
