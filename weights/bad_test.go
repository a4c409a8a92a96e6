// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package weights_test

import (
	"encoding/binary"
	"encoding/json"
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
		{"not JSON", file(`{"a":`, 0), "header: at byte 13: not valid JSON: unexpected end of JSON input"},
		{"garbage", file(`{} x`, 0), "header: at byte 12: not valid JSON: invalid character 'x' after top-level value"},
		{"not UTF-8", file("{\"a\xff\":1}", 0), "header: at byte 11: not valid UTF-8"},
		{"duplicate", file(`{"a":`+ok+`,"a":`+ok+`}`, 8), `header: at byte 65: key "a" occurs twice`},
		{"duplicate inside", file(`{"a":{"dtype":"F32","dtype":"F16"}}`, 8), `header: at byte 35: tensor "a": key "dtype" occurs twice`},
		{"case", file(`{"a":{"DType":"F32"}}`, 8), `header: at byte 21: tensor "a": unknown key "DType"`},
		{"metadata", file(`{"__metadata__":{"a":1}}`, 0), `header: at byte 30: got 1, want a string`},
		{"no tensor", file(`{"a":7}`, 0), `header: at byte 14: tensor "a": got 7, want an object {…}`},
		{"no dtype", file(`{"a":{"shape":[],"data_offsets":[0,4]}}`, 4), `header: at byte 46: tensor "a": key "dtype" is missing`},
		{"no shape", file(`{"a":{"dtype":"F32","data_offsets":[0,4]}}`, 4), `header: at byte 49: tensor "a": key "shape" is missing`},
		{"no offsets", file(`{"a":{"dtype":"F32","shape":[]}}`, 4), `header: at byte 39: tensor "a": data_offsets: got [], want two`},
		{"three offsets", file(`{"a":{"dtype":"F32","shape":[],"data_offsets":[0,4,8]}}`, 4), `header: at byte 60: tensor "a": more than 2 integers`},
		{"dtype", file(`{"a":{"dtype":"F8_E4M3","shape":[4],"data_offsets":[0,4]}}`, 4), `header: at byte 65: tensor "a": dtype "F8_E4M3" is unknown or not supported`},
		{"negative", file(`{"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}}`, 4), `header: at byte 62: tensor "a": shape [-1]: want sizes of at least 0`},
		{"fraction", file(`{"a":{"dtype":"F32","shape":[1.5],"data_offsets":[0,4]}}`, 4), `header: at byte 40: tensor "a": got 1.5, want an integer below 2^63`},
		{"null", file(`{"a":{"dtype":"F32","shape":null,"data_offsets":[0,4]}}`, 4), `header: at byte 40: tensor "a": got null, want a list of integers`},
		{"overflow", file(`{"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}}`, 0), `header: at byte 81: tensor "a": shape [4294967296 4294967296]: more than 2^63 bytes`},
		{"2^63", file(`{"a":{"dtype":"F32","shape":[9223372036854775808],"data_offsets":[0,0]}}`, 0), `header: at byte 56: tensor "a": got 9223372036854775808, want an integer below 2^63`},
		{"backwards", file(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}}`, 4), `header: at byte 61: tensor "a": data_offsets: got [4 0], want 0 ≤ begin ≤ end`},
		{"size", file(`{"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}}`, 8), `header: at byte 61: tensor "a": data_offsets [0 8] are 8 bytes apart, but shape [3] of F32 takes 12`},
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
		{"nothing", map[string]string{"config.json": "{}"}, "weights: m: want model.safetensors or model.safetensors.index.json: file does not exist"},
		{"other format", map[string]string{"pytorch_model.bin": ""}, "file does not exist (there is pytorch_model.bin)"},
		{"missing shard", map[string]string{"1.safetensors": one, indexName: both}, "weights: m/" + indexName + " lists a shard that is missing: weights: blob: opening m/2.safetensors: file does not exist"},
		{"not in the shard", map[string]string{"1.safetensors": one, "2.safetensors": two, indexName: `{"weight_map":{"a":"1.safetensors","b":"1.safetensors","c":"2.safetensors"}}`}, `tensor "b": is not in 1.safetensors`},
		{"not in the index", map[string]string{"1.safetensors": one, "2.safetensors": file(`{"b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"c":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}`, 2), indexName: both}, `tensor "c" of 2.safetensors is not listed`},
		{"in two shards", map[string]string{"1.safetensors": one, "2.safetensors": one, indexName: both}, `weights: m/2.safetensors: tensor "a": is also in 1.safetensors`},
		{"outside", map[string]string{indexName: `{"weight_map":{"a":"../x.safetensors"}}`}, `tensor "a": got file ../x.safetensors, want the name of a file beside the index`},
		{"no map", map[string]string{indexName: `{"metadata":{}}`}, "want an object weight_map that names the file of each tensor"},
		{"two models", map[string]string{"model.safetensors": one, "1.safetensors": one, "2.safetensors": two, indexName: both}, "which does not list it: which is the model?"},
		{"index", map[string]string{indexName: "{\n\"weight_map\":{},\n\"weight_map\":{}}"}, "weights: m/" + indexName + `:3: key "weight_map" occurs twice`},
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

func TestJSON(t *testing.T) {
	m, err := weights.ParseJSON("c", []byte(`{"n": 9007199254740993, "x": [1e-5, null, {"y": "\u00e9"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if m["n"] != json.Number("9007199254740993") || m["x"].([]any)[0] != json.Number("1e-5") {
		t.Errorf("numbers were changed: %v", m)
	}
	for text, want := range map[string]string{
		"":                              "weights: c:1: not valid JSON: unexpected end of JSON input",
		"[]":                            "weights: c: want an object {…}",
		"{}\n{}":                        "weights: c:2: not valid JSON: invalid character '{' after top-level value",
		"{\n\"a\": NaN}":                "weights: c:2: not valid JSON: invalid character 'N' looking for beginning of value",
		"{\"a\":[{\"b\":1,\n\"b\":2}]}": "weights: c:2: key \"b\" occurs twice",
		"{\"a\":1,}":                    "weights: c:1: not valid JSON: invalid character '}' looking for beginning of object key string",
		"{\"a\":\"\xff\"}":              "weights: c:1: not valid UTF-8",
		"{\"a\":010}":                   "weights: c:1: not valid JSON: invalid character '1' after object key:value pair",
		"null":                          "weights: c: want an object {…}",
	} {
		if _, err := weights.ParseJSON("c", []byte(text)); err == nil || err.Error() != want || !errors.Is(err, fault.Data) {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
	if _, err := weights.JSON("testdata/none.json"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	if _, err := weights.JSON("testdata/sharded/" + indexName); err != nil {
		t.Error(err)
	}
}

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
