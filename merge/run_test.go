// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"pleach/blob"
	"pleach/half"
	"pleach/internal/fault"
	"pleach/kernel"
	"pleach/merge/method"
	"pleach/weights"
)

// writeModel writes a model directory with these tensors, filled from a seed.
func writeModel(t *testing.T, dir string, seed uint64, limit int64, tensors []weights.Source) {
	t.Helper()
	for i := range tensors {
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		if !tensors[i].DType.IsFloat() {
			tensors[i].Raw = func(lo, hi int, dst []byte) error {
				for k := range dst {
					dst[k] = byte(lo + k)
				}
				return nil
			}
			continue
		}
		tensors[i].Read = func(_, _ int, dst []float32) error {
			for k := range dst {
				dst[k] = float32(r.NormFloat64())
			}
			return nil
		}
	}
	p, err := weights.NewPlan("model", limit, tensors)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Write(".", blob.Local(dir).Write); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(`{"architectures": ["Some"]}`), 0o666); err != nil {
		t.Fatal(err)
	}
}

// scaled is a method of two passes: the sum of all inputs, times the mean of squares
// of the first.
func scaled() *method.Method {
	return &method.Method{Name: "scaled", New: func(p method.Problem) (method.Job, error) {
		n := p.Len()
		return &scaledJob{n: n, parts: make([]float64, method.Chunks(n, chunkOfScaled))}, nil
	}}
}

const chunkOfScaled = 100 // of a size that divides nothing

type scaledJob struct {
	n, begun int
	parts    []float64
	mean     float32
}

func (j *scaledJob) Chunk() int    { return chunkOfScaled }
func (j *scaledJob) Scratch() int  { return 7 }
func (j *scaledJob) Memory() int64 { return int64(8 * len(j.parts)) }

func (j *scaledJob) Begin() (*method.Pass, error) {
	j.begun++
	switch j.begun {
	case 1:
		return &method.Pass{Chunks: []int{0}, Do: func(c *method.Chunk) error {
			if c.Index != 0 || c.Lo != 0 || c.Out != nil {
				return fmt.Errorf("a chunk that was not asked for: %d", c.Index)
			}
			return nil
		}}, nil
	case 2:
		return &method.Pass{Need: []bool{true, false, false}, Do: func(c *method.Chunk) error {
			if c.In[1] != nil {
				return errors.New("an input that was not asked for")
			}
			for _, v := range c.In[0] {
				j.parts[c.Index] += float64(v) * float64(v)
			}
			return nil
		}}, nil
	case 3:
		sum := 0.0
		for _, p := range j.parts {
			sum += p
		}
		j.mean = float32(sum / float64(j.n))
		return &method.Pass{Writes: true, Do: func(c *method.Chunk) error {
			for i := range c.Out {
				c.Out[i] = (c.In[0][i] + c.In[1][i] + c.In[2][i]) * j.mean
			}
			return nil
		}}, nil
	}
	return nil, nil
}

// testShapes are the tensors of test models. The last one is no float.
func testShapes(t half.DType, rows int) []weights.Source {
	return []weights.Source{
		{Name: "embed", DType: t, Shape: []int{rows, 33}},
		{Name: "a", DType: t, Shape: []int{1000, 7}},
		{Name: "b", DType: t, Shape: []int{299}},
		{Name: "none", DType: t, Shape: []int{0, 4}},
		{Name: "one", DType: t, Shape: nil},
		{Name: "ids", DType: half.I64, Shape: []int{11}},
	}
}

// testPlan is a merge of three models of different types and shards, of which one
// has more rows in its embedding and one wider ones.
func testPlan(t *testing.T) *Plan {
	t.Helper()
	dir := t.TempDir()
	p := &Plan{Config: &Config{Text: []byte("merge_method: scaled\n")}, Method: scaled(), Base: -1}
	types := []half.DType{half.BF16, half.F32, half.F16}
	for i, dt := range types {
		at := filepath.Join(dir, fmt.Sprint(i))
		shapes := testShapes(dt, 50+10*i)
		if i == 2 {
			shapes[0].Shape = []int{60, 40}
		}
		writeModel(t, at, uint64(i+1), []int64{0, 9000, 0}[i], shapes)
		m, err := OpenModel(fmt.Sprint("model", i), at, "")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(m.Close)
		p.Models = append(p.Models, m)
	}
	for k, s := range testShapes(half.F32, 50) {
		x := Tensor{Name: s.Name, Shape: s.Shape, DType: half.BF16, Base: -1, Copy: s.Name == "ids"}
		if x.Copy {
			x.DType = half.I64
		}
		if k == 1 {
			x.HasCast, x.Cast, x.DType = true, half.F16, half.F32
		}
		for i, m := range p.Models {
			shape, dt, ok := m.Tensor(s.Name)
			if !ok {
				t.Fatalf("no tensor %s", s.Name)
			}
			x.Inputs = append(x.Inputs, Input{Model: i, Number: i, Name: s.Name, Shape: shape, DType: dt})
		}
		p.Tensors = append(p.Tensors, x)
	}
	return p
}

func (p *Plan) small(threads int, memory int64) Limits {
	return Limits{Memory: Base + memory, Threads: threads, Level: kernel.Best()}
}

// output runs a plan into memory, with blocks of about so many elements and an
// arena of so many bytes.
func output(t *testing.T, p *Plan, lim Limits, block, arena int) [][]byte {
	t.Helper()
	m := NewMemory(p)
	r := &runner{plan: p, sink: m, level: lim.Level}
	if err := r.measure(lim); err != nil {
		t.Fatal(err)
	}
	r.block, r.arena = block, newArena(arena)
	ctx, stop := context.WithCancelCause(t.Context())
	defer stop(nil)
	r.ctx, r.stop = ctx, stop
	if err := r.run(lim.Threads); err != nil {
		t.Fatal(err)
	}
	return m.bytes
}

// wanted computes the output of testPlan whole and plainly.
func wanted(t *testing.T, p *Plan) [][]byte {
	t.Helper()
	var all [][]byte
	for _, x := range p.Tensors {
		b := make([]byte, x.Len()*x.DType.Size())
		if x.Copy {
			if err := p.Models[0].Weights.Raw(x.Name, 0, x.Len(), b); err != nil {
				t.Fatal(err)
			}
			all = append(all, b)
			continue
		}
		in := make([][]float32, 3)
		for i, m := range p.Models {
			in[i] = make([]float32, x.Len())
			shape := x.Shape
			if len(shape) == 0 {
				shape = []int{}
			}
			if err := m.Weights.Box(x.Name, make([]int, len(shape)), shape, in[i]); err != nil {
				t.Fatal(err)
			}
			if x.HasCast {
				for k, v := range in[i] {
					in[i][k] = half.FromF16(half.ToF16(v))
				}
			}
		}
		sum := 0.0
		for lo := 0; lo < x.Len(); lo += chunkOfScaled {
			part := 0.0
			for _, v := range in[0][lo:min(lo+chunkOfScaled, x.Len())] {
				part += float64(v) * float64(v)
			}
			sum += part
		}
		out := make([]float32, x.Len())
		for i := range out {
			out[i] = (in[0][i] + in[1][i] + in[2][i]) * float32(sum/float64(x.Len()))
		}
		if err := half.FromF32(b, x.DType, out); err != nil {
			t.Fatal(err)
		}
		all = append(all, b)
	}
	return all
}

// TestRun runs a merge with all inputs held, with some, and with none, in blocks of
// several sizes.
func TestRun(t *testing.T) {
	p := testPlan(t)
	want := wanted(t, p)
	for _, threads := range []int{1, 3} {
		for _, arena := range []int{0, 20 << 10, 100 << 10, 1 << 20} {
			for _, block := range []int{1, 1000, 1 << 18} {
				for i, got := range output(t, p, p.small(threads, 64<<20), block, arena) {
					if !bytes.Equal(got, want[i]) {
						t.Errorf("%d threads, blocks of %d, arena of %d: tensor %s: got other bytes",
							threads, block, arena, p.Tensors[i].Name)
					}
				}
			}
		}
	}
}

func TestTooLittleMemory(t *testing.T) {
	p := testPlan(t)
	err := p.Run(t.Context(), NewMemory(p), Limits{Memory: Base, Threads: 2, Level: kernel.Best()}, nil)
	if !errors.Is(err, fault.Config) || !strings.Contains(err.Error(), "merge: memory: got 72 MiB, want at least ") {
		t.Errorf("got %v", err)
	}
}

// failing fails at its nth write.
type failing struct {
	Sink
	mu sync.Mutex
	n  int
}

func (f *failing) WriteAt(i int, b []byte, at int64) error {
	f.mu.Lock()
	f.n--
	n := f.n
	f.mu.Unlock()
	if n < 0 {
		return fault.Machinef("no space left")
	}
	return f.Sink.WriteAt(i, b, at)
}

// TestFolder interrupts a merge at every write, goes on, and compares the files with
// those of one that was not interrupted.
func TestFolder(t *testing.T) {
	p := testPlan(t)
	lim := p.small(2, 8<<20)
	id, err := p.Identity("1")
	if err != nil {
		t.Fatal(err)
	}
	small := map[string][]byte{"config.json": []byte("{}\n")}
	dir := t.TempDir()
	for _, shard := range []int64{0, 5000} {
		p.Options.ShardBytes = shard
		layout, err := p.Layout()
		if err != nil {
			t.Fatal(err)
		}
		whole := filepath.Join(dir, fmt.Sprint("whole", shard))
		f, err := NewFolder(whole, layout, p.Tensors, id, false)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(p.Run(t.Context(), f, lim, nil), f.Publish(copied(small), Provenance{})); err != nil {
			t.Fatal(err)
		}
		want := files(t, whole)
		for n := range 8 {
			out := filepath.Join(dir, fmt.Sprint("out", shard, "-", n))
			f, err := NewFolder(out, layout, p.Tensors, id, true)
			if err != nil {
				t.Fatal(err)
			}
			err = p.Run(t.Context(), &failing{Sink: f, n: n}, lim, nil)
			f.Close()
			if n < 5 && !errors.Is(err, fault.Machine) {
				t.Fatalf("write %d: got %v, want a failure", n, err)
			}
			if _, err := os.Stat(out); err == nil {
				t.Fatal("an output that is not complete")
			}
			if f, err = NewFolder(out, layout, p.Tensors, id, true); err != nil {
				t.Fatal(err)
			}
			left := f.Left()
			var done int64
			if err := p.Run(t.Context(), f, lim, func(n int64) { done = n }); err != nil {
				t.Fatal(err)
			}
			if done != left {
				t.Errorf("write %d: progress: got %d bytes, want %d", n, done, left)
			}
			if err := f.Publish(copied(small), Provenance{}); err != nil {
				t.Fatal(err)
			}
			if got := files(t, out); !same(got, want) {
				t.Errorf("write %d: got files %v, want %v", n, names(got), names(want))
			}
		}
		if _, err := NewFolder(whole, layout, p.Tensors, id, false); !errors.Is(err, fault.State) {
			t.Errorf("an output that exists: got %v", err)
		}
	}
}

func TestFolderOfAnother(t *testing.T) {
	p := testPlan(t)
	layout, err := p.Layout()
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "out")
	f, err := NewFolder(out, layout, p.Tensors, []byte("seed 1\n"), false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewFolder(out, layout, p.Tensors, []byte("seed 1\n"), true); !errors.Is(err, fault.Machine) {
		t.Errorf("a second process: got %v", err)
	}
	f.Close()
	_, err = NewFolder(out, layout, p.Tensors, []byte("seed 2\n"), true)
	if !errors.Is(err, fault.State) || !strings.Contains(err.Error(), "then seed 1, now seed 2") {
		t.Errorf("another seed: got %v", err)
	}
	f, err = NewFolder(out, layout, p.Tensors, []byte("seed 2\n"), false)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
}

// TestJournalCut cuts the journal at every byte, as a power cut does.
func TestJournalCut(t *testing.T) {
	p := testPlan(t)
	layout, err := p.Layout()
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "out")
	f, err := NewFolder(out, layout, p.Tensors, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Run(t.Context(), f, p.small(1, 8<<20), nil); err != nil {
		t.Fatal(err)
	}
	f.Close()
	journal := filepath.Join(Part(out), journalName)
	text, err := os.ReadFile(journal)
	if err != nil {
		t.Fatal(err)
	}
	for n := range text {
		if err := os.WriteFile(journal, text[:n], 0o666); err != nil {
			t.Fatal(err)
		}
		f, err := NewFolder(out, layout, p.Tensors, nil, true)
		if err != nil {
			t.Fatal(err)
		}
		count := 0
		for i := range p.Tensors {
			if f.Has(i) {
				count++
			}
		}
		f.Close()
		if want := bytes.Count(text[:n], []byte("\n")); count != want {
			t.Errorf("%d bytes: got %d tensors, want %d", n, count, want)
		}
	}
	if err := os.WriteFile(journal, []byte("7\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := NewFolder(out, layout, p.Tensors, nil, true); !errors.Is(err, fault.State) {
		t.Errorf("a damaged journal: got %v", err)
	}
}

func TestNonFinite(t *testing.T) {
	p := testPlan(t)
	w, ok := p.Models[1].Weights.Lookup("b")
	if !ok {
		t.Fatal("no b")
	}
	f, err := os.OpenFile(filepath.Join(p.Models[1].Dir, w.File), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(binary.LittleEndian.AppendUint32(nil, 0x7fc00000), w.Offset+4*17); err != nil {
		t.Fatal(err)
	}
	err = p.Run(t.Context(), NewMemory(p), p.small(2, 8<<20), nil)
	if want := "merge: tensor b: model model1: element 17 of shape [299] is NaN"; !errors.Is(err, fault.Data) ||
		!strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
	p.Options.NonFinite = true
	if err := p.Run(t.Context(), NewMemory(p), p.small(2, 8<<20), nil); err != nil {
		t.Errorf("allowed: got %v", err)
	}
}

func TestOverflow(t *testing.T) {
	p := testPlan(t)
	p.Method = &method.Method{Name: "large", New: func(q method.Problem) (method.Job, error) { return &largeJob{}, nil }}
	p.Tensors = p.Tensors[:1]
	p.Tensors[0].DType = half.F16
	err := p.Run(t.Context(), NewMemory(p), p.small(1, 8<<20), nil)
	want := "merge: tensor embed: the result: element 3 of shape [50 33] is 70000, which f16 cannot hold"
	if !errors.Is(err, fault.Data) || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
	p.Tensors[0].DType = half.BF16
	if err := p.Run(t.Context(), NewMemory(p), p.small(1, 8<<20), nil); err != nil {
		t.Errorf("bf16: got %v", err)
	}
}

type largeJob struct{ begun bool }

func (j *largeJob) Chunk() int    { return 1 << 14 }
func (j *largeJob) Scratch() int  { return 0 }
func (j *largeJob) Memory() int64 { return 0 }
func (j *largeJob) Begin() (*method.Pass, error) {
	if j.begun {
		return nil, nil
	}
	j.begun = true
	return &method.Pass{Writes: true, Do: func(c *method.Chunk) error {
		clear(c.Out)
		c.Out[3] = 70000
		return nil
	}}, nil
}

func TestCopyDiffers(t *testing.T) {
	p := testPlan(t)
	w, _ := p.Models[2].Weights.Lookup("ids")
	f, err := os.OpenFile(filepath.Join(p.Models[2].Dir, w.File), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte{99}, w.Offset); err != nil {
		t.Fatal(err)
	}
	err = p.Run(t.Context(), NewMemory(p), p.small(1, 8<<20), nil)
	if err == nil || !strings.Contains(err.Error(), "tensor ids: elements of type i64 are copied, but those of model model0 and model model2 differ") {
		t.Errorf("got %v", err)
	}
}

func TestRunStops(t *testing.T) {
	p := testPlan(t)
	ctx, stop := context.WithCancel(t.Context())
	m := NewMemory(p)
	err := p.Run(ctx, &stopping{m, stop}, p.small(2, 8<<20), nil)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

type stopping struct {
	*Memory
	stop func()
}

func (s *stopping) WriteAt(i int, b []byte, at int64) error {
	s.stop()
	return nil
}

func copied(m map[string][]byte) map[string][]byte {
	c := map[string][]byte{}
	for k, v := range m {
		c[k] = v
	}
	return c
}

// files are the files of a folder and what is in them.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	es, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, e := range es {
		f, err := os.Open(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(f)
		_ = f.Close()
		if err != nil {
			t.Fatal(err)
		}
		all[e.Name()] = string(b)
	}
	return all
}

func names(m map[string]string) (list []string) {
	for n := range m {
		list = append(list, n)
	}
	return list
}

func same(a, b map[string]string) bool {
	if len(a) != len(b) {
		return false
	}
	for n, s := range a {
		if b[n] != s {
			return false
		}
	}
	return true
}

// TestCopyMemory: what copying takes counts.
func TestCopyMemory(t *testing.T) {
	dir := t.TempDir()
	tiny := &tiny{Config: map[string]any{"architectures": []string{"Some"}}, Tensors: map[string][]int{"ids": {1 << 20}}}
	tiny.types = map[string]half.DType{"ids": half.I64}
	tiny.write(t, dir)
	m, err := OpenModel("m", dir, "")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	x := Tensor{Name: "ids", Shape: []int{1 << 20}, DType: half.I64, Copy: true, Base: -1}
	x.Inputs = []Input{{Name: "ids", Shape: x.Shape, DType: half.I64}}
	p := &Plan{Config: &Config{}, Method: scaled(), Models: []*Model{m}, Tensors: []Tensor{x}}
	lim := Limits{Memory: Base + 20<<20, Threads: 8}
	r := &runner{plan: p}
	if err := r.measure(lim); err != nil {
		t.Fatal(err)
	}
	if got, most := 2*8*r.block*2*lim.Threads, 20<<20; got > most {
		t.Errorf("blocks of %d elements take %d bytes, want at most %d", r.block, got, most)
	}
}

// TestReadingMemory: what is not read as it is stored takes buffers.
func TestReadingMemory(t *testing.T) {
	p := testPlan(t)
	if got := p.reading(3); got < 3*8<<16 {
		t.Errorf("with an embedding that is cut: got %d bytes", got)
	}
	p.Tensors = p.Tensors[1:]
	if got := p.reading(3); got != 0 {
		t.Errorf("with tensors as they are stored: got %d bytes", got)
	}
}

// TestFail: an error names its tensor once.
func TestFail(t *testing.T) {
	x := &Tensor{Name: "a.weight"}
	for err, want := range map[string]string{
		"merge: linear of \"a.weight\": no sum": "merge: linear of \"a.weight\": no sum",
		"model m: tensor a.weight: NaN":         "merge: tensor a.weight: model m: tensor a.weight: NaN",
		"got 3":                                 "merge: tensor a.weight: got 3",
	} {
		if got := x.fail(errors.New(err)).Error(); got != want {
			t.Errorf("%s: got %s, want %s", err, got, want)
		}
	}
}
