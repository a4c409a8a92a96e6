// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

// Package table reads rows of columnar files by number: Parquet, Arrow IPC files
// and Arrow IPC streams. A line of code belongs here if it knows how such a file
// lays out a column, and nothing of documents, ids or runs.
//
// Types to know: [Table] is an open file, [Field] a column that is wanted and
// what as, [Batch] the values that were read.
//
//	t, err := table.Open(f, size, "train-00000.parquet")
//	...
//	var b table.Batch
//	err = t.Read(1000, 1100, []table.Field{{Path: "messages.content"}}, &b)
//	c := &b.Columns[0]
//	for r := range b.Rows {
//		lo, hi := c.Row(r)
//		for i := lo; i < hi; i++ {
//			use(c.Text(i))
//		}
//	}
//
// # Fields
//
// A field is the names on the way to a column, with dots: "text", "meta.id". A
// list is passed without a name of its own, and makes of one row several values:
// "messages.content" is the contents of all messages of a row, in order, however
// the file spells a list.
//
// # Finding a row
//
// Rows are reached without decoding what is in front of them. A Parquet column is a
// run of pages. Where the file has an offset index, it says which rows a page holds;
// where it has none, the headers of the pages are walked, once for a column of a row
// group, at one small read for each page, and remembered. The exception are lists
// without that index in pages of the older layout ("V1", the default of pyarrow):
// their headers count values, not rows, so the pages in front are decompressed and
// the rows in them counted, once, without decoding values.
//
// Of an Arrow file the headers of all batches are walked when it is opened. Of a
// batch only the buffers of the wanted columns are read, and only the part with the
// wanted rows where they are not compressed.
//
// # Memory
//
// Decoded pages of Parquet files stay in memory for all readers, up to 128 MiB of the
// process, those used last; one that is larger stays alone. Readers that take turns
// with files, or take a few rows of a page at a time, do not decode it each time. Of
// an Arrow file each Batch has the buffers that it reads from: 64 KiB of one that is
// not compressed, else the whole of it.
//
// # Damage
//
// Sizes and counts that a file claims are checked against limits and against the
// bytes that are there before memory is taken for them. Page checksums are checked
// where a Parquet file has them; a page must have exactly the values and bytes that
// it claims, and the pages of a column the rows of their group. Where a file has no
// checksums (the default of most writers; Arrow has none at all), damaged bytes of a
// text are a different text. An Arrow stream may end after any batch: one that was
// cut there cannot be told from a whole one.
//
// Encrypted files, maps and values inside of unions are refused by name.
//
// Not here: compressed files as a whole (data/frame), JSON, which rows make a
// document (data).
package table
