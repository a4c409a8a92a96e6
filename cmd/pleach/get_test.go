// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"pleach/blob/blobtest"
)

// hubs is the endpoint of a hub with a model and a data set.
func hubs(t *testing.T) string {
	model := blobtest.NewHub(t, "org/model", map[string][]byte{
		"config.json":       []byte("{}\n"),
		"model.safetensors": bytes.Repeat([]byte("weights "), 1000),
		"onnx/model.onnx":   bytes.Repeat([]byte("o"), 3000),
	}, nil)
	data := blobtest.NewHub(t, "datasets/org/data", map[string][]byte{
		"train/a.jsonl": []byte("{\"text\":\"One day, a little girl found a needle in her room.\"}\n"),
		"train/b.jsonl": []byte("{\"text\":\"She knew it was difficult to play with it.\"}\n"),
		"README.md":     []byte("# Data\n"),
	}, nil)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		to := model.URL
		if strings.Contains(q.URL.Path, "datasets/") {
			to = data.URL
		}
		u, _ := url.Parse(to)
		httputil.NewSingleHostReverseProxy(u).ServeHTTP(w, q)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func TestUsualDir(t *testing.T) {
	for url, want := range map[string]string{
		"hf://org/name": "name", "hf://org/name@v1": "name", "hf://datasets/org/name@v1/data/x*": "name", "hf://org": "",
		"s3://b/x/y/": "y", "s3://b/x/*.parquet?region=a": "x", "s3://b": "b", "gs://b/**": "b",
	} {
		if got := usualDir(url); got != want {
			t.Errorf("%s: got %q, want %q", url, got, want)
		}
	}
}
