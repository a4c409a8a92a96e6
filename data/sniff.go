// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package data

import (
	"bytes"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"pleach/data/frame"
)

// Formats of files.
const (
	formatText    = "text"    // a file is a document
	formatLines   = "lines"   // a line of a text file is one, so that a long file is many
	formatJSONL   = "jsonl"   // a line is JSON and holds one
	formatParquet = "parquet" // a row holds one
	formatArrow   = "arrow"   // a row of an Arrow IPC file or stream does
)

// headSize is how much of a file decides what it is.
const headSize = 8 << 10

// magics are the first bytes of what is not text, with the reason that is
// counted. Those that hold documents in a form not read yet are marked.
var magics = []struct {
	magic, reason string
	later         bool
}{
	{"%PDF-", "PDF", false},
	{"\x89PNG\r\n", "image", false},
	{"\xff\xd8\xff", "image", false},
	{"GIF8", "image", false},
	{"II*\x00", "image", false},
	{"MM\x00*", "image", false},
	{"PK\x03\x04", "archive", false},
	{"PK\x05\x06", "archive", false},
	{"7z\xbc\xaf\x27\x1c", "archive", false},
	{"Rar!\x1a\x07", "archive", false},
	{"\x1f\x8b", "gzip in gzip", true},
	{"\x28\xb5\x2f\xfd", "zstd in zstd", true},
	{"BZh", "bzip2", true},
	{"\xfd7zXZ\x00", "xz", true},
	{"OggS", "audio or video", false},
	{"ID3", "audio or video", false},
	{"fLaC", "audio or video", false},
	{"\xd0\xcf\x11\xe0", "office document", false},
	{"{\\rtf", "office document", false},
	{"\xff\xfe", "not UTF-8", false},
	{"\xfe\xff", "not UTF-8", false},
}

// notText says why a file that starts with head is not text, "" if it may be,
// and whether it is a form of documents that is not read yet.
func notText(head []byte) (reason string, later bool) {
	for _, m := range magics {
		if bytes.HasPrefix(head, []byte(m.magic)) {
			return m.reason, m.later
		}
	}
	if len(head) > 12 && string(head[:4]) == "RIFF" {
		if string(head[8:12]) == "WEBP" {
			return "image", false
		}
		return "audio or video", false
	}
	if len(head) > 262 && string(head[257:262]) == "ustar" {
		return "archive", false
	}
	control := 0
	for _, c := range head {
		if c == 0 {
			return "binary", false
		}
		// Form feeds and terminal escapes occur in text.
		if c < 0x20 && c != '\t' && c != '\n' && c != '\r' && c != '\f' && c != 0x1b {
			control++
		}
	}
	if control*32 > len(head) {
		return "binary", false
	}
	return "", false
}

// validHead reports whether head is UTF-8, but for a rune cut by its end.
func validHead(head []byte, whole bool) bool {
	if !whole {
		for i := 1; i < utf8.UTFMax && i <= len(head); i++ {
			if c := head[len(head)-i]; utf8.RuneStart(c) {
				if !utf8.FullRune(head[len(head)-i:]) {
					head = head[:len(head)-i]
				}
				break
			}
		}
	}
	return utf8.Valid(head)
}

// formatOf says how a file of no stated format is read, if its lines hold text
// in field. Some call lines of JSON .json, as they call a single value.
func formatOf(name string, head []byte, field string) string {
	if is := tableFormat(head); is != "" {
		return is
	}
	switch strings.ToLower(filepath.Ext(name)) {
	case ".jsonl", ".ndjson":
		return formatJSONL
	case ".json":
		first, rest, _ := bytes.Cut(trimBOM(head), []byte("\n"))
		another := bytes.HasPrefix(bytes.TrimLeft(rest, " \t\r\n"), []byte("{"))
		if another && parseObject(first, nil) == nil && !lacks(head, field) {
			return formatJSONL
		}
	}
	return formatText
}

// formatByName is the format and the compression that a name tells, "" if it does
// not tell for certain.
func formatByName(name string) (format string, packed frame.Format) {
	ext := func() string { return strings.ToLower(filepath.Ext(name)) }
	switch ext() {
	case ".gz":
		packed = frame.Gzip
	case ".zst":
		packed = frame.Zstd
	}
	if packed != frame.None {
		name = name[:len(name)-len(filepath.Ext(name))]
	}
	switch ext() {
	case ".jsonl", ".ndjson":
		format = formatJSONL
	case ".parquet":
		format = formatParquet
	case ".arrow":
		format = formatArrow
	case ".txt", ".md", ".rst":
		format = formatText
	}
	return format, packed
}

// lacks reports whether the first line of a file, if head has all of it, is an
// object without a field. An empty field is lacked by none.
func lacks(head []byte, field string) bool {
	first, _, whole := bytes.Cut(trimBOM(head), []byte("\n"))
	if field == "" || !whole && len(head) == headSize {
		return false
	}
	has := false
	err := parseObject(first, func(key string, _ []byte) { has = has || key == field })
	return err == nil && !has
}

// trimBOM drops a byte order mark: it says how text is stored and is no part of it.
func trimBOM(text []byte) []byte { return bytes.TrimPrefix(text, []byte("\ufeff")) }
