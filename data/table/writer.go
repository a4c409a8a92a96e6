// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package table

import (
	"io"
	"maps"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	build "github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"pleach/internal/fault"
)

// A Kind is what a written column holds.
type Kind uint8

// The kinds.
const (
	Int64   Kind = iota // a whole number
	String              // a text in UTF-8
	Numbers             // a list of int32
	Bits                // a list of uint8
	Strings             // a list of texts
)

// A Writer writes an Arrow IPC file with zstd-compressed buffers, a batch of rows
// at a time. Errors that writing meets are told by the next EndBatch or Close.
type Writer struct {
	file    *ipc.FileWriter
	builder *build.RecordBuilder
	rows    int64
}

// ColumnDef is a column to be written.
type ColumnDef struct {
	Name string
	Kind Kind
}

// NewWriter begins a file. The metadata is that of its schema, for whoever looks
// at the file.
func NewWriter(w io.Writer, metadata map[string]string, columns ...ColumnDef) (*Writer, error) {
	var fields []arrow.Field
	for _, c := range columns {
		fields = append(fields, arrow.Field{Name: c.Name, Type: c.Kind.arrow(), Nullable: true})
	}
	keys := slices.Sorted(maps.Keys(metadata))
	var values []string
	for _, k := range keys {
		values = append(values, metadata[k])
	}
	md := arrow.NewMetadata(keys, values)
	schema := arrow.NewSchema(fields, &md)
	f, err := ipc.NewFileWriter(w, ipc.WithSchema(schema), ipc.WithZstd())
	if err != nil {
		return nil, fault.Machinef("table: writing: %w", err)
	}
	return &Writer{file: f, builder: build.NewRecordBuilder(memory.DefaultAllocator, schema)}, nil
}

func (k Kind) arrow() arrow.DataType {
	switch k {
	case Int64:
		return arrow.PrimitiveTypes.Int64
	case Numbers:
		return arrow.ListOf(arrow.PrimitiveTypes.Int32)
	case Bits:
		return arrow.ListOf(arrow.PrimitiveTypes.Uint8)
	case Strings:
		return arrow.ListOf(arrow.BinaryTypes.String)
	}
	return arrow.BinaryTypes.String
}

// Int sets column i of the row at hand. Each row sets each of its columns once.
func (w *Writer) Int(i int, v int64) { w.builder.Field(i).(*build.Int64Builder).Append(v) }

// Text sets column i of the row at hand.
func (w *Writer) Text(i int, v string) { w.builder.Field(i).(*build.StringBuilder).Append(v) }

// Null leaves column i of the row at hand without a value.
func (w *Writer) Null(i int) { w.builder.Field(i).AppendNull() }

// Numbers sets column i of the row at hand.
func (w *Writer) Numbers(i int, v []int32) {
	b := w.builder.Field(i).(*build.ListBuilder)
	b.Append(true)
	b.ValueBuilder().(*build.Int32Builder).AppendValues(v, nil)
}

// Bits sets column i of the row at hand.
func (w *Writer) Bits(i int, v []uint8) {
	b := w.builder.Field(i).(*build.ListBuilder)
	b.Append(true)
	b.ValueBuilder().(*build.Uint8Builder).AppendValues(v, nil)
}

// Strings sets column i of the row at hand.
func (w *Writer) Strings(i int, v []string) {
	b := w.builder.Field(i).(*build.ListBuilder)
	b.Append(true)
	b.ValueBuilder().(*build.StringBuilder).AppendValues(v, nil)
}

// EndBatch writes the rows since the last one as a batch, even if there are none.
func (w *Writer) EndBatch() error {
	batch := w.builder.NewRecordBatch()
	defer batch.Release()
	if err := w.file.Write(batch); err != nil {
		return fault.Machinef("table: writing a batch: %w", err)
	}
	w.rows += batch.NumRows()
	return nil
}

// Rows is the number of rows in the batches so far.
func (w *Writer) Rows() int64 { return w.rows }

// Close ends the file; it does not close what it was written to.
func (w *Writer) Close() error {
	w.builder.Release()
	if err := w.file.Close(); err != nil {
		return fault.Machinef("table: writing: %w", err)
	}
	return nil
}
