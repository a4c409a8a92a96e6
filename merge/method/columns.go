// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package method

// columnsJob takes every vector along the first dimension of two inputs as one of its
// own: the tensor is seen as a matrix of R rows and C columns, and the vectors are
// columns.
//
// Passes measure a few chunks at a time, each chunk into sums that no other chunk of
// its pass touches: chunks of whole rows have a table of all columns each, chunks of
// wide rows have columns of their own in one table. Every column is so summed in an
// order that follows from the shape alone, and the tables do not grow with the tensor.
type columnsJob struct {
	combination
	columns int
	size    int // of a chunk
	lanes   int // chunks of a pass that measures
	wide    bool

	next   int         // the chunk that the next pass begins with
	tables [][]float64 // [C,3]: v_0·v_0, v_1·v_0, v_1·v_1 of every column
	coef   []float32   // [C,2]
	done   bool
}

const (
	columnTables = 16      // at most
	columnChunk  = 1 << 18 // elements of a chunk of whole rows, if so many fit
	wideRow      = 1 << 17 // rows of more columns are cut
)

// overColumns is the job that takes every vector along the first dimension.
func (s combination) overColumns() Job {
	n := s.p.Len()
	if len(s.p.Shape) < 2 || n == 0 || s.p.Shape[0] == n {
		return s.overTensor()
	}
	j := &columnsJob{combination: s, columns: n / s.p.Shape[0]}
	if j.columns > wideRow {
		j.wide, j.size, j.lanes = true, Flat, j.columns/Flat
		return j
	}
	j.size = columnChunk / j.columns * j.columns
	j.lanes = min(columnTables, Chunks(n, j.size))
	return j
}

func (j *columnsJob) Chunk() int { return j.size }

// Scratch is that of two vectors of a block, with or without a base.
func (j *columnsJob) Scratch() int { return 2 * block }

// Memory is that of the tables and of the coefficients.
func (j *columnsJob) Memory() int64 {
	tables := j.lanes
	if j.wide {
		tables = 1
	}
	return int64(j.columns) * int64(24*tables+8)
}

func (j *columnsJob) Begin() (*Pass, error) {
	if j.done {
		return nil, nil
	}
	need := j.p.needs(j.inputs, j.base)
	count := Chunks(j.p.Len(), j.size)
	if j.next < count {
		var chunks []int
		for range min(j.lanes, count-j.next) {
			chunks = append(chunks, j.next)
			j.next++
		}
		j.allocate()
		return &Pass{Chunks: chunks, Need: need, Do: j.measure}, nil
	}
	if err := j.solveColumns(); err != nil {
		return nil, err
	}
	j.done = true
	return &Pass{Writes: true, Need: need, Do: j.write}, nil
}

// allocate makes the tables, when the first pass begins.
func (j *columnsJob) allocate() {
	if j.tables != nil {
		return
	}
	tables := j.lanes
	if j.wide {
		tables = 1
	}
	for range tables {
		j.tables = append(j.tables, make([]float64, 3*j.columns))
	}
}

// runs calls f for the parts of a chunk that lie in one row and one block: elements lo
// to hi of the chunk, the first of which is in a column.
func (j *columnsJob) runs(c *Chunk, f func(v [][]float32, lo, hi, column int)) {
	v := make([][]float32, 2)
	for at := 0; at < c.Len(); at += block {
		end := min(at+block, c.Len())
		j.vectors(v, c, at, end)
		for lo := at; lo < end; {
			column := (c.Lo + lo) % j.columns
			hi := min(end, lo+j.columns-column)
			f([][]float32{v[0][lo-at : hi-at], v[1][lo-at : hi-at]}, lo, hi, column)
			lo = hi
		}
	}
}

// measure adds a chunk to its table. Products are exact in float64.
func (j *columnsJob) measure(c *Chunk) error {
	table := j.tables[0]
	if !j.wide {
		table = j.tables[c.Index%j.lanes]
	}
	j.runs(c, func(v [][]float32, lo, hi, column int) {
		sums := table[3*column : 3*(column+hi-lo)]
		x, y := v[0], v[1][:len(v[0])]
		for i, a := range x {
			s := sums[3*i : 3*i+3]
			p, q := float64(a), float64(y[i])
			s[0] += float64(p * p)
			s[1] += float64(q * p)
			s[2] += float64(q * q)
		}
	})
	return nil
}

// solveColumns adds the tables in their order and solves every column.
func (j *columnsJob) solveColumns() error {
	total := j.tables[0]
	for _, t := range j.tables[1:] {
		for i, x := range t {
			total[i] += x
		}
	}
	j.tables = nil
	j.coef = make([]float32, 2*j.columns)
	coef := make([]float64, 2)
	for i := range j.columns {
		if err := j.solve(coef, total[3*i:3*i+3]); err != nil {
			return err
		}
		j.coef[2*i], j.coef[2*i+1] = float32(coef[0]), float32(coef[1])
	}
	return nil
}

// write combines a chunk: float32, each product and each sum rounded, the base last.
func (j *columnsJob) write(c *Chunk) error {
	j.runs(c, func(v [][]float32, lo, hi, column int) {
		y, coef := c.Out[lo:hi], j.coef[2*column:]
		for i, x := range v[0] {
			y[i] = float32(coef[2*i]*x) + float32(coef[2*i+1]*v[1][i])
		}
		if j.base >= 0 {
			j.p.Level.AddInto(y, c.In[j.base][lo:hi])
		}
	})
	return nil
}
