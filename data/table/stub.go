package table

import "io"

const continuation = 0xFFFFFFFF

func (t *Table) openParquet(r io.ReaderAt, size int64) error { panic("x") }
func (t *Table) openArrow(r io.ReaderAt, size int64) error   { panic("x") }
