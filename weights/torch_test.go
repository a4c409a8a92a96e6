// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package weights_test

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pleach/blob"
	"pleach/half"
	"pleach/internal/fault"
	"pleach/weights"
)

func openTorch(t *testing.T, dir string) *weights.Set {
	t.Helper()
	set, err := weights.OpenDir("testdata/torch/" + dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { set.Close() })
	return set
}

func all(t *testing.T, set *weights.Set, name string) []float32 {
	t.Helper()
	x, _ := set.Lookup(name)
	v := make([]float32, x.Len())
	if err := set.Read(name, 0, len(v), v); err != nil {
		t.Error(err)
	}
	return v
}

// TestTorchTypes reads what testdata/make_torch.py wrote: every type, and where
// each tensor should be.
func TestTorchTypes(t *testing.T) {
	set := openTorch(t, "all")
	got := map[string]string{}
	at := int64(0)
	for _, x := range set.Tensors() {
		got[x.Name] = fmt.Sprintf("%v %d %d", x.DType, x.Shape, x.Size)
		if x.Offset < at || x.File != "pytorch_model.bin" {
			t.Errorf("%s: at %d of %s, behind %d", x.Name, x.Offset, x.File, at)
		}
		at = x.Offset
	}
	want := map[string]string{
		"f32": "f32 [3 5] 60", "f64": "f64 [2 3 2] 96", "bf16": "bf16 [7] 14", "f16": "f16 [4 3] 24",
		"i64": "i64 [6] 48", "i32": "i32 [6] 24", "i16": "i16 [6] 12", "i8": "i8 [6] 6", "u8": "u8 [5] 5",
		"bool": "bool [3] 3", "scalar": "f32 [] 4", "empty": "f32 [0 4] 0", "parameter": "f32 [3] 12",
		"base": "f32 [4 6] 96", "tied": "f32 [4 6] 96", "rows": "f32 [2 6] 48", "columns": "f32 [4 3] 48",
		"steps": "f32 [2 2] 16", "transposed": "f32 [6 4] 96", "bf16 transposed": "bf16 [80 3 70] 33600",
		"expanded": "f32 [2 3] 24", "one": "f32 [1 1] 4",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	for _, name := range []string{"f32", "f64", "bf16", "f16", "parameter", "base", "tied"} {
		if v := all(t, set, name); !slices.Equal(v, ramp(len(v))) {
			t.Errorf("%s: got %v", name, v)
		}
	}
	for name, want := range map[string]string{
		"i64":  strings.Repeat("\xff", 8)[:8],
		"i16":  "\xff\xff",
		"i8":   "\xff",
		"bool": "\x01",
	} {
		b := make([]byte, len(want))
		if err := set.Raw(name, 2, 3, b); err != nil || string(b) != want {
			t.Errorf("%s: got %x, %v, want %x", name, b, err, want)
		}
	}
	if v := all(t, set, "scalar"); v[0] != 2.5 {
		t.Errorf("scalar: got %v", v)
	}
}

// strided is what the tensors of the golden file are, computed from the arrays that
// they are parts of.
func strided() map[string][]float32 {
	base, big := ramp(24), ramp(3*70*80)
	pick := func(n int, at func(i int) int, x []float32) []float32 {
		v := make([]float32, n)
		for i := range v {
			v[i] = x[at(i)]
		}
		return v
	}
	return map[string][]float32{
		"rows":            base[6:18],
		"columns":         pick(12, func(i int) int { return i/3*6 + 2 + i%3 }, base),
		"steps":           pick(4, func(i int) int { return i/2*12 + i%2*3 }, base),
		"transposed":      pick(24, func(i int) int { return i%4*6 + i/4 }, base),
		"bf16 transposed": pick(len(big), func(i int) int { return i%210*80 + i/210 }, big),
		"expanded":        {1.5, 1.5, 1.5, -2, -2, -2},
		"one":             {base[5]},
	}
}

// TestTorchStrides reads views of arrays, in ranges of all kinds.
func TestTorchStrides(t *testing.T) {
	set := openTorch(t, "all")
	r := rand.New(rand.NewPCG(1, 2))
	for name, want := range strided() {
		if got := all(t, set, name); !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
		x, _ := set.Lookup(name)
		for range 50 {
			lo := r.IntN(len(want) + 1)
			hi := lo + r.IntN(len(want)-lo+1)
			got := make([]float32, hi-lo)
			if err := set.Read(name, lo, hi, got); err != nil || !slices.Equal(got, want[lo:hi]) {
				t.Fatalf("%s [%d:%d]: got %v, %v, want %v", name, lo, hi, got, err, want[lo:hi])
			}
			raw := make([]byte, len(got)*x.DType.Size())
			if err := set.Raw(name, lo, hi, raw); err != nil || half.ToF32(got, x.DType, raw) != nil ||
				!slices.Equal(got, want[lo:hi]) {
				t.Fatalf("%s [%d:%d] raw: got %v, %v, want %v", name, lo, hi, got, err, want[lo:hi])
			}
		}
	}
	box := make([]float32, 4)
	want := strided()["transposed"]
	if err := set.Box("transposed", []int{2, 1}, []int{2, 2}, box); err != nil ||
		!slices.Equal(box, []float32{want[9], want[10], want[13], want[14]}) {
		t.Errorf("a box: got %v, %v", box, err)
	}
}

func TestTorchDirs(t *testing.T) {
	set := openTorch(t, "nested")
	got := map[string][]float32{}
	for _, x := range set.Tensors() {
		got[x.Name] = all(t, set, x.Name)
	}
	if d := cmp.Diff(map[string][]float32{
		"norm.weight": {1, 1, 1, 1}, "norm.bias": {0, 0, 0, 0}, "linear.weight": ramp(8),
	}, got); d != "" {
		t.Error(d)
	}
	set = openTorch(t, "sharded")
	for i := range 3 {
		name := fmt.Sprintf("model.layers.%d.w.weight", i)
		if v := all(t, set, name); !slices.Equal(v, ramp(8*(8+i))) {
			t.Errorf("%s: got %v", name, v)
		}
	}
	// Where both are, safetensors are read.
	both := mem(t, map[string]string{
		"pytorch_model.bin": golden(t, "torch/all/pytorch_model.bin"),
		"model.safetensors": golden(t, "all.safetensors"),
	})
	set, err := weights.Open(both, ".")
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := set.Lookup("tied"); ok {
		t.Error("pytorch_model.bin was read, though there is model.safetensors")
	}
}

func golden(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// archive makes a zip archive as torch.save does.
func archive(t testing.TB, entries map[string]string) string {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		w, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Store})
		if err == nil {
			_, err = io.WriteString(w, entries[name])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// saved is the archive of a pickle and one storage, 0, of 24 bytes.
func saved(t testing.TB, pickle string) string {
	return archive(t, map[string]string{"a/data.pkl": pickle, "a/data/0": strings.Repeat("\x00\x3f", 12)})
}

// storage and tensor are parts of pickles: a storage of n floats, and a tensor of it.
func storage(key, kind string, n int) string {
	return "(" + text("storage") + "ctorch\n" + kind + "\n" + text(key) + text("cpu") + "K" + string(rune(n)) + "tQ"
}

func text(s string) string { return "X" + string([]byte{byte(len(s)), 0, 0, 0}) + s }

func ints(list ...int) string {
	s := "("
	for _, n := range list {
		s += "J" + string([]byte{byte(n), byte(n >> 8), byte(n >> 16), byte(n >> 24)})
	}
	return s + "t"
}

func tensor(storage string, offset int, shape, stride string) string {
	return "ctorch._utils\n_rebuild_tensor_v2\n(" + storage + ints(offset)[1:6] + shape + stride + "\x89}tR"
}

func dict(name, value string) string { return "\x80\x02}" + text(name) + value + "s." }

func TestBadTorch(t *testing.T) {
	six := storage("0", "FloatStorage", 6)
	for _, c := range []struct{ name, file, want string }{
		{"empty", "", "got 0 bytes, want a zip archive that torch.save wrote"},
		{"no zip", strings.Repeat("x", 100), "want a zip archive that torch.save wrote: zip: not a valid zip file"},
		{"old", golden(t, "torch/old.bin"), "got the format of torch.save before PyTorch 1.6, want the zip archive of later ones: load and save it again with a newer PyTorch"},
		{"float8", golden(t, "torch/float8.bin"), `got the global "torch._utils._rebuild_tensor_v3", which is none of those that saved tensors need: it is not run`},
		{"sparse", golden(t, "torch/sparse.bin"), `got the global "torch._utils._rebuild_sparse_tensor", which is none of those that saved tensors need: it is not run`},
		{"negative", golden(t, "torch/negative.bin"), `got a tensor with properties (conjugate, negative), want a plain one`},
		{"call", golden(t, "torch/call.bin"), `got the global "posix.system", which is none of those that saved tensors need: it is not run`},
		{"number", golden(t, "torch/number.bin"), `"b": got the integer 7, want a tensor`},
		{"list", golden(t, "torch/list.bin"), `got a list, want a dictionary of tensors`},
		{"big", golden(t, "torch/big.bin"), `byteorder: got "big", want little`},
		{"compressed", golden(t, "torch/compressed.bin"), `is compressed or encrypted (method 8), want it stored, as torch.save does`},
		{"short", golden(t, "torch/short.bin"), `storage "0": got 8 bytes, want 3 elements of f32`},
		{"no pickle", archive(t, map[string]string{"a/x": ""}), `the zip archive has no data.pkl: torch.save did not write it`},
		{"two pickles", archive(t, map[string]string{"a/data.pkl": "", "b/data.pkl": ""}), `the zip archive has both a/data.pkl and b/data.pkl: which is the model?`},
		{"no storage", saved(t, dict("x", tensor(storage("7", "FloatStorage", 6), 0, ints(6), ints(1)))), `the zip archive has no entry "a/data/7"`},
		{"storage type", saved(t, dict("x", tensor(storage("0", "QInt8Storage", 24), 0, ints(6), ints(1)))), `got the global "torch.QInt8Storage", which is none of those that saved tensors need: it is not run`},
		{"storage name", saved(t, dict("x", "X\x01\x00\x00\x000Q")), `got the string "0", want the five words of a storage`},
		{"outside", saved(t, dict("x", tensor(six, 1, ints(2, 3), ints(3, 1)))), `shape [2 3] with stride [3 1] at 1: is not within its storage of 6 elements`},
		{"stride", saved(t, dict("x", tensor(six, 0, ints(2, 3), ints(4, 1)))), `shape [2 3] with stride [4 1] at 0: is not within its storage of 6 elements`},
		{"scalar outside", saved(t, dict("x", tensor(six, 6, ints(), ints()))), `shape [] with stride [] at 6: is not within its storage of 6 elements`},
		{"empty outside", saved(t, dict("x", tensor(six, 7, ints(0), ints(1)))), `shape [0] with stride [1] at 7: is not within its storage of 6 elements`},
		{"overflow", saved(t, dict("x", tensor(six, 0, ints(1<<31-1, 1<<31-1, 4), ints(0, 0, 0)))), `shape [2147483647 2147483647 4]: more than 2^63 bytes`},
		{"negative size", saved(t, dict("x", tensor(six, 0, ints(-1), ints(1)))), `want integers of at least 0, two lists as long as each other, at most 64`},
		{"dimensions", saved(t, dict("x", tensor(six, 0, ints(1, 2), ints(1)))), `want integers of at least 0, two lists as long as each other, at most 64`},
		{"no tensor", saved(t, dict("x", "ctorch._utils\n_rebuild_tensor_v2\n(K\x00tR")), `torch._utils._rebuild_tensor_v2: got other arguments than torch.save writes: 1 of them`},
		{"no storage", saved(t, dict("x", tensor("N", 0, ints(1), ints(1)))), `torch._utils._rebuild_tensor_v2: got None, want a storage`},
		{"twice", saved(t, "\x80\x02}"+text("x")+tensor(six, 0, ints(), ints())+"s"+text("x")+tensor(six, 0, ints(), ints())+"s."), `tensor "x": is there twice`},
		{"name", saved(t, "\x80\x02}K\x01"+tensor(six, 0, ints(), ints())+"s."), `got the integer 1 as the name of a tensor, want a string`},
		{"pickle ends", saved(t, "\x80\x02}"), `byte 3 of the pickle: the pickle ends here: it is cut off`},
		{"string ends", saved(t, "\x80\x02X\xff\xff\xff\xff"), `byte 7 of the pickle: the pickle ends here: it is cut off`},
		{"name ends", saved(t, "\x80\x02ctorch"), `byte 3 of the pickle: the file ends inside a name`},
		{"protocol", saved(t, "\x80\x04}."), `byte 2 of the pickle: got protocol 4, want 2, and that once`},
		{"operation", saved(t, "\x80\x02\x93."), `byte 3 of the pickle: operation 0x93: is none of those that saved tensors need`},
		{"text after", saved(t, "\x80\x02}.x"), `byte 4 of the pickle: it ends with 1 values and 1 bytes, want one value and no more bytes`},
		{"empty stack", saved(t, "\x80\x02\x85."), `the stack is empty`},
		{"no mark", saved(t, "\x80\x02t."), `there is no mark on the stack`},
		{"below a mark", saved(t, "\x80\x02}(\x85."), `the stack is empty`},
		{"memo", saved(t, "\x80\x02h\x00."), `got place 0 of the memo, want one of 0`},
		{"memo hole", saved(t, "\x80\x02}r\xff\xff\xff\xff."), `got place 4294967295 of the memo, want at most the next one, 0`},
		{"list to dict", saved(t, "\x80\x02}(Na."), `the stack is empty`},
		{"append to dict", saved(t, "\x80\x02}Na."), `adding 1 values to a dictionary`},
		{"odd", saved(t, "\x80\x02}(Nu."), `adding 1 values to a dictionary`},
		{"call of a number", saved(t, "\x80\x02K\x01)R."), `calling the integer 1 with a tuple of 0`},
		{"attributes", saved(t, "\x80\x02]}b."), `giving attributes to a list`},
		{"long", saved(t, "\x80\x02\x8a\x09123456789."), `got an integer of 9 bytes, want at most 8`},
		{"not UTF-8", saved(t, "\x80\x02X\x01\x00\x00\x00\xff."), `got a string that is not UTF-8`},
		{"deep", saved(t, "\x80\x02"+strings.Repeat("(", 1<<17)), `got a stack of more than 65536 values`},
		{"wide", saved(t, "\x80\x02"+strings.Repeat("N", 1<<17)), `got a stack of more than 65536 values`},
		{"many", saved(t, "\x80\x02}"+strings.Repeat("\x85", 1<<23)), `got more than 4194304 values`},
	} {
		t.Run(c.name, func(t *testing.T) {
			set, err := weights.Open(mem(t, map[string]string{"pytorch_model.bin": c.file}), ".")
			if err == nil {
				t.Fatalf("it was accepted: %v", set.Tensors())
			}
			if !strings.HasSuffix(err.Error(), c.want) || !errors.Is(err, fault.Data) ||
				!strings.Contains(err.Error(), "pytorch_model.bin: ") {
				t.Errorf("got  %v\nwant weights: pytorch_model.bin: %s", err, c.want)
			}
		})
	}
}

// TestTorchIntegers has what torch.save writes for large numbers.
func TestTorchIntegers(t *testing.T) {
	six := storage("0", "FloatStorage", 6)
	for _, n := range []string{"K\x02", "M\x02\x00", "J\x02\x00\x00\x00", "\x8a\x01\x02", "\x8a\x08\x02\x00\x00\x00\x00\x00\x00\x00"} {
		file := saved(t, dict("x", tensor(six, 0, "("+n+"K\x03t", "(K\x03K\x01t")))
		set, err := weights.OpenFiles(mem(t, map[string]string{"x.pt": file}), "x.pt")
		if err != nil {
			t.Fatal(err)
		}
		if x, _ := set.Lookup("x"); !slices.Equal(x.Shape, []int{2, 3}) {
			t.Errorf("%q: got shape %d", n, x.Shape)
		}
	}
	file := saved(t, dict("x", tensor(six, 0, "(\x8a\x01\xfft", "(K\x01t")))
	if _, err := weights.OpenFiles(mem(t, map[string]string{"x.pt": file}), "x.pt"); err == nil {
		t.Error("-1 was read as a size")
	}
}

// FuzzTorch feeds pickles. Nothing may panic, memory stays in proportion to the
// file, and what is accepted can be read.
func FuzzTorch(f *testing.F) {
	for _, name := range []string{"all/pytorch_model.bin", "nested/pytorch_model.bin", "call.bin", "sparse.bin"} {
		z, err := zip.OpenReader("testdata/torch/" + name)
		if err != nil {
			f.Fatal(err)
		}
		for _, e := range z.File {
			if !strings.HasSuffix(e.Name, "data.pkl") {
				continue
			}
			r, err := e.Open()
			if err != nil {
				f.Fatal(err)
			}
			b, _ := io.ReadAll(r)
			f.Add(string(b))
		}
		z.Close()
	}
	six := storage("0", "FloatStorage", 6)
	f.Add(dict("x", tensor(six, 1, ints(2, 2), ints(1, 2))))
	f.Add(dict("x", tensor(six, 0, ints(3, 2), ints(0, 0))))
	f.Add(dict("state_dict", "}q\x00"+text("state_dict")+"h\x00s"))
	f.Fuzz(func(t *testing.T, pickle string) { tryTorch(t, saved(t, pickle)) })
}

// FuzzTorchFile feeds whole archives.
func FuzzTorchFile(f *testing.F) {
	for _, name := range []string{"all/pytorch_model.bin", "big.bin", "compressed.bin", "old.bin"} {
		b, err := os.ReadFile("testdata/torch/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(b))
	}
	f.Fuzz(tryTorch)
}

func tryTorch(t *testing.T, file string) {
	s := mem(t, map[string]string{"pytorch_model.bin": file})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	set, err := weights.Open(s, ".")
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20+400*uint64(len(file)) {
		t.Errorf("%d bytes were allocated for a file of %d", n, len(file))
	}
	if err != nil {
		if !errors.Is(err, fault.Data) {
			t.Errorf("not an error of kind data: %v", err)
		}
		return
	}
	for _, x := range set.Tensors() {
		for _, at := range []int{0, x.Len() / 2, x.Len() - min(x.Len(), 1000)} {
			hi := min(x.Len(), at+1000)
			if err := set.Raw(x.Name, at, hi, make([]byte, (hi-at)*x.DType.Size())); err != nil {
				t.Error(err)
			}
		}
	}
}

func ExampleOpenFiles() {
	set, err := weights.OpenFiles(blob.Local("testdata/torch/all"), "pytorch_model.bin")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer set.Close()
	column := make([]float32, 4)
	err = set.Read("transposed", 0, 4, column)
	fmt.Println(column, err)
	// Output: [-6.25 -3.75 -1.25 1.25] <nil>
}
