// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package blob

import (
	"errors"
	"strings"
	"testing"

	"pleach/internal/fault"
)

func TestParsePlace(t *testing.T) {
	for _, c := range []struct {
		url  string
		want place
	}{
		{"s3://b", place{scheme: "s3", bucket: "b"}},
		{"s3://b/", place{scheme: "s3", bucket: "b"}},
		{"s3://b/x/y z%20*.gz?region=a&endpoint=http://h:1", place{"s3", "b", "", "x/y z%20*.gz", "region=a&endpoint=http://h:1"}},
		{"gs://b/x/", place{scheme: "gs", bucket: "b", key: "x/"}},
		{"hf://o/n", place{scheme: "hf", bucket: "o/n"}},
		{"hf://models/o/n@v1.0/a/b", place{scheme: "hf", bucket: "o/n", version: "v1.0", key: "a/b"}},
		{"hf://datasets/o/n/a@b", place{scheme: "hf", bucket: "datasets/o/n", key: "a@b"}},
		{"hf://datasets/o/n@refs/convert/parquet/default/*.parquet", place{"hf", "datasets/o/n", "refs/convert/parquet", "default/*.parquet", ""}},
		{"hf://datasets/o/n@refs%2Fpr%2F1/x", place{"hf", "datasets/o/n", "refs/pr/1", "x", ""}},
		{"hf://o/n@refs/pr/1", place{scheme: "hf", bucket: "o/n", version: "refs/pr/1"}},
	} {
		if got, err := parsePlace(c.url); err != nil || got != c.want {
			t.Errorf("%s: got %+v, %v\nwant %+v", c.url, got, err, c.want)
		}
	}
	for url, want := range map[string]string{
		"s3:///x": "no bucket", "s3://b//x": "two slashes", "x/y": "want a URL", "/a://b": "want a URL",
		"s3://b/[a": "no end", "hf://n": "want hf://", "hf://datasets/n": "want hf://", "hf://o/n@refs": "refs/pr/1",
		"hf://o/n?x=1": "options", "s3://b/x?%zz": "options", "hf://o@main/n": "want hf://",
	} {
		if _, err := parsePlace(url); err == nil || !strings.Contains(err.Error(), want) || !errors.Is(err, fault.Config) {
			t.Errorf("%s: got %v, want %q of kind config", url, err, want)
		}
	}
}

// TestMatch: which keys a URL stands for, and what of them stays when a corpus
// moves, as for paths of this machine.
func TestMatch(t *testing.T) {
	for _, c := range []struct{ url, key, rel string }{
		{"s3://b", "x/y", "x/y"},
		{"s3://b/x", "x/y", "y"},
		{"s3://b/x", "xy", ""},
		{"s3://b/x", "x/", ""}, // a folder that some tools make
		{"s3://b/x/", "x/y/z", "y/z"},
		{"s3://b/x/*.a", "x/y.a", "y.a"},
		{"s3://b/x/*.a", "x/y/z.a", ""},
		{"s3://b/x/*.a", "x/y.b", ""},
		{"s3://b/x/y*/*.a", "x/y1/z.a", "y1/z.a"},
		{"s3://b/x/**/*.a", "x/z.a", "z.a"},
		{"s3://b/x/**/*.a", "x/1/2/z.a", "1/2/z.a"},
		{"s3://b/**", "x/1/2/z.a", "x/1/2/z.a"},
		{"s3://b/**/x/**/*.a", "1/x/x/2/z.a", "1/x/x/2/z.a"},
		{"s3://b/**/x/*.a", "x/1/x/z.a", "x/1/x/z.a"},
		{"s3://b/**/x/*.a", "x/1/z.a", ""},
		{"s3://b/x/**", "x/1/2", "1/2"},
		{"s3://b/**/**/**/**/**/**/**/**/**/**/**/q", "1/2/3/4/5/6/7/8/9/a/b/c/d/e/f/g/h/i/j/k/l/m/n/o", ""}, // at once
		{"s3://b/x/[a-c]1", "x/b1", "b1"},
		{"s3://b/x/[a-c]1", "x/d1", ""},
	} {
		p, err := parsePlace(c.url)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if p.match(c.key) {
			got = p.rel(c.key)
		}
		if got != c.rel {
			t.Errorf("%s of %s: got %q, want %q", c.url, c.key, got, c.rel)
		}
		if c.rel != "" && !strings.HasPrefix(c.key, p.prefix()) {
			t.Errorf("%s: the prefix %q would not list %s", c.url, p.prefix(), c.key)
		}
	}
	if p, _ := parsePlace("s3://b/x/y.a"); p.rel("x/y.a") != "y.a" {
		t.Errorf("one object: got %q", p.rel("x/y.a"))
	}
}
