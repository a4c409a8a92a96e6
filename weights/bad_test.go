// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package weights_test

import (
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"testing"

	"pleach/blob"
	"pleach/blob/blobtest"
	"pleach/internal/fault"
	"pleach/weights"
)

// file makes a safetensors file of a header and n bytes of data.
func file(header string, n int) string {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return string(b) + header + strings.Repeat("\x00", n)
}

func mem(t testing.TB, files map[string]string) blob.Store {
	t.Helper()
	s := &blob.Dir{Files: blobtest.NewMem(), Root: "m"}
	for name, text := range files {
		err := s.Write(name, func(w io.Writer) error {
			_, err := io.WriteString(w, text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func TestBadFiles(t *testing.T) {
	const ok = `{"dtype":"F32","shape":[2],"data_offsets":[0,8]}`
	for _, c := range []struct{ name, file, want string }{
		{"empty", "", "got 0 bytes, want at least the 8 of the header length"},
		{"short", "1234567", "got 7 bytes, want at least the 8 of the header length"},
		{"huge header", "\xff\xff\xff\xff\xff\xff\xff\xff{}", "header length: got 18446744073709551615 bytes, want at most 100000000"},
		{"truncated header", file("{   }", 0)[:12], "header: want 5 bytes, but only 4 follow: the file is truncated"},
		{"no header", file("", 0), "header: want a JSON object that begins at once with {"},
		{"no object", file("[1]", 0), "header: want a JSON object that begins at once with {"},
		{"not JSON", file(`{"a":`, 0), "header: byte 13: the text ends, want a value"},
		{"garbage", file(`{} x`, 0), "header: byte 11: text after the end of the document"},
		{"not UTF-8", file("{\"a\xff\":1}", 0), "header: byte 11: not valid UTF-8"},
		{"duplicate", file(`{"a":`+ok+`,"a":`+ok+`}`, 8), `header: byte 62: key "a" stands twice in one object`},
		{"duplicate inside", file(`{"a":{"dtype":"F32","dtype":"F16"}}`, 8), `header: byte 28: key "dtype" stands twice in one object`},
		{"case", file(`{"a":{"DType":"F32"}}`, 8), `header: byte 22: tensor "a": unknown key "DType"`},
		{"metadata", file(`{"__metadata__":{"a":1}}`, 0), `header: byte 29: __metadata__: "a": got the number 1, want a string`},
		{"no tensor", file(`{"a":7}`, 0), `header: byte 13: tensor "a": got the number 7, want an object`},
		{"no dtype", file(`{"a":{"shape":[],"data_offsets":[0,4]}}`, 4), `header: byte 13: tensor "a": key "dtype" is missing`},
		{"no shape", file(`{"a":{"dtype":"F32","data_offsets":[0,4]}}`, 4), `header: byte 13: tensor "a": key "shape" is missing`},
		{"no offsets", file(`{"a":{"dtype":"F32","shape":[]}}`, 4), `header: byte 13: tensor "a": data_offsets: got [], want two`},
		{"three offsets", file(`{"a":{"dtype":"F32","shape":[],"data_offsets":[0,4,8]}}`, 4), `header: byte 54: tensor "a": data_offsets: got 3 integers, want at most 2`},
		{"dtype", file(`{"a":{"dtype":"F8_E4M3","shape":[4],"data_offsets":[0,4]}}`, 4), `header: byte 13: tensor "a": dtype "F8_E4M3" is unknown or not supported`},
		{"negative", file(`{"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}}`, 4), `header: byte 13: tensor "a": shape [-1]: want sizes of at least 0`},
		{"fraction", file(`{"a":{"dtype":"F32","shape":[1.5],"data_offsets":[0,4]}}`, 4), `header: byte 36: tensor "a": shape: got the number 1.5, want an integer below 2^63`},
		{"null", file(`{"a":{"dtype":"F32","shape":null,"data_offsets":[0,4]}}`, 4), `header: byte 36: tensor "a": shape: got null, want a list of integers`},
		{"overflow", file(`{"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}}`, 0), `header: byte 13: tensor "a": shape [4294967296 4294967296]: more than 2^63 bytes`},
		{"2^63", file(`{"a":{"dtype":"F32","shape":[9223372036854775808],"data_offsets":[0,0]}}`, 0), `header: byte 36: tensor "a": shape: got the number 9223372036854775808, want an integer below 2^63`},
		{"backwards", file(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}}`, 4), `header: byte 13: tensor "a": data_offsets: got [4 0], want 0 ≤ begin ≤ end`},
		{"size", file(`{"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}}`, 8), `header: byte 13: tensor "a": data_offsets [0 8] are 8 bytes apart, but shape [3] of F32 takes 12`},
		{"overlap", file(`{"a":`+ok+`,"b":{"dtype":"U8","shape":[2],"data_offsets":[7,9]}}`, 9), `tensor "b": begins at data offset 7, inside tensor "a", which ends at 8`},
		{"hole", file(`{"a":`+ok+`,"b":{"dtype":"U8","shape":[2],"data_offsets":[9,11]}}`, 11), `tensor "b": begins at data offset 9, want 8: there is a hole before it`},
		{"truncated", file(`{"a":`+ok+`}`, 7), `tensor "a": ends at data offset 8, but there are only 7 bytes: the file is truncated`},
		{"too long", file(`{"a":`+ok+`}`, 9), `1 bytes follow the last tensor, want none`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := weights.Open(mem(t, map[string]string{"model.safetensors": c.file}), ".")
			if err == nil || !strings.HasSuffix(err.Error(), c.want) || !errors.Is(err, fault.Data) ||
				!strings.Contains(err.Error(), "model.safetensors: ") {
				t.Errorf("got  %v\nwant weights: model.safetensors: %s", err, c.want)
			}
		})
	}
}

const indexName = "model.safetensors.index.json"

func TestBadDirs(t *testing.T) {
	one := file(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}`, 1)
	two := file(`{"b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}`, 1)
	both := `{"weight_map":{"a":"1.safetensors","b":"2.safetensors"}}`
	for _, c := range []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"nothing", map[string]string{"config.json": "{}"}, "weights: m: want model.safetensors or model.safetensors.index.json, or pytorch_model.bin or pytorch_model.bin.index.json: file does not exist"},
		{"other format", map[string]string{"consolidated.00.pth": ""}, "file does not exist (there is consolidated.00.pth)"},
		{"missing shard", map[string]string{"1.safetensors": one, indexName: both}, "weights: m/" + indexName + " lists a shard that is missing: weights: blob: opening m/2.safetensors: file does not exist"},
		{"not in the shard", map[string]string{"1.safetensors": one, "2.safetensors": two, indexName: `{"weight_map":{"a":"1.safetensors","b":"1.safetensors","c":"2.safetensors"}}`}, `tensor "b": is not in 1.safetensors`},
		{"not in the index", map[string]string{"1.safetensors": one, "2.safetensors": file(`{"b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"c":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}`, 2), indexName: both}, `tensor "c" of 2.safetensors is not listed`},
		{"in two shards", map[string]string{"1.safetensors": one, "2.safetensors": one, indexName: both}, `weights: m/2.safetensors: tensor "a": is also in 1.safetensors`},
		{"outside", map[string]string{indexName: `{"weight_map":{"a":"../x.safetensors"}}`}, `tensor "a": got the string "../x.safetensors", want the name of a file beside the index`},
		{"no map", map[string]string{indexName: `{"metadata":{}}`}, "want an object weight_map that names the file of each tensor"},
		{"two models", map[string]string{"model.safetensors": one, "1.safetensors": one, "2.safetensors": two, indexName: both}, "which does not list it: which is the model?"},
		{"missing shard of torch.save", map[string]string{"pytorch_model.bin.index.json": `{"weight_map":{"a":"1.bin"}}`}, "weights: m/pytorch_model.bin.index.json lists a shard that is missing: weights: blob: opening m/1.bin: file does not exist"},
		{"two models of torch.save", map[string]string{"pytorch_model.bin": "", "pytorch_model.bin.index.json": `{"weight_map":{"a":"1.bin"}}`}, "both pytorch_model.bin and pytorch_model.bin.index.json, which does not list it: which is the model?"},
		{"index", map[string]string{indexName: "{\n\"weight_map\":{},\n\"weight_map\":{}}"}, "weights: m/" + indexName + `:3: key "weight_map" stands twice in one object`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := weights.Open(mem(t, c.files), ".")
			if err == nil || !errors.Is(err, fault.Data) || !strings.HasSuffix(slashes(err.Error()), c.want) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
	if _, err := weights.OpenDir("testdata/none"); !errors.Is(err, fs.ErrNotExist) || !errors.Is(err, fault.Data) {
		t.Errorf("a missing directory: %v", err)
	}
}

func slashes(s string) string { return strings.ReplaceAll(s, `\`, "/") }

// FuzzOpen feeds whole files. Nothing may panic, what is accepted can be read
// whole, and memory stays in proportion to the file.
func FuzzOpen(f *testing.F) {
	for _, name := range []string{"testdata/all.safetensors", "testdata/sharded/model-00001-of-00005.safetensors"} {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(b))
	}
	f.Add(file(`{"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}}`, 0))
	f.Add(file(`{"a":{"dtype":"F32","shape":[0,9223372036854775807],"data_offsets":[0,0]}}`, 0))
	f.Add(file(`{"__metadata__":{"format":"pt"}}`, 0))
	f.Add("\xff\xff\xff\xff\xff\xff\xff\x7f{}")
	f.Fuzz(func(t *testing.T, data string) {
		s := mem(t, map[string]string{"model.safetensors": data})
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		set, err := weights.Open(s, ".")
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20+200*uint64(len(data)) {
			t.Errorf("%d bytes were allocated for a file of %d", n, len(data))
		}
		if err != nil {
			if !errors.Is(err, fault.Data) {
				t.Errorf("not an error of kind data: %v", err)
			}
			return
		}
		for _, x := range set.Tensors() {
			b := make([]byte, x.Size)
			if err := set.Raw(x.Name, 0, x.Len(), b); err != nil {
				t.Error(err)
			}
		}
	})
}
