// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package blobtest

import (
	"bytes"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
)

// S3 is a server in this process that speaks as S3 does, with one bucket named
// "bucket". It checks no signatures.
type S3 struct {
	t       testing.TB
	backend gofakes3.Backend
	server  *httptest.Server
}

// NewS3 starts a server that ends with the test. wrap, if not nil, stands before
// it: [Flaky] for example.
func NewS3(t testing.TB, wrap func(http.Handler) http.Handler) *S3 {
	s := &S3{t: t, backend: s3mem.New()}
	h := s.ifMatch(gofakes3.New(s.backend, gofakes3.WithoutVersioning()).Server())
	if wrap != nil {
		h = wrap(h)
	}
	s.server = httptest.NewServer(h)
	t.Cleanup(s.server.Close)
	if err := s.backend.CreateBucket("bucket"); err != nil {
		t.Fatal(err)
	}
	// The vendor's client wants to know who asks.
	t.Setenv("AWS_ACCESS_KEY_ID", "test")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "test")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	t.Setenv("AWS_CONFIG_FILE", "none")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", "none")
	return s
}

// ifMatch adds what gofakes3 lacks: a GET of another version than asked for is
// refused.
func (s *S3) ifMatch(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		bucket, key, _ := strings.Cut(strings.TrimPrefix(q.URL.Path, "/"), "/")
		if tag := q.Header.Get("If-Match"); tag != "" && q.Method == http.MethodGet {
			o, err := s.backend.HeadObject(bucket, key)
			if err == nil && tag != `"`+hex.EncodeToString(o.Hash)+`"` {
				w.WriteHeader(http.StatusPreconditionFailed)
				_, _ = io.WriteString(w, "<Error><Code>PreconditionFailed</Code></Error>")
				return
			}
		}
		next.ServeHTTP(w, q)
	})
}

// Put stores an object, past what stands before the server.
func (s *S3) Put(key string, text []byte) {
	s.t.Helper()
	s.PutFrom(key, bytes.NewReader(text), int64(len(text)))
}

// PutFrom stores an object of this size.
func (s *S3) PutFrom(key string, r io.Reader, size int64) {
	s.t.Helper()
	if _, err := s.backend.PutObject("bucket", key, map[string]string{}, r, size, nil); err != nil {
		s.t.Fatal(err)
	}
}

// URL is that of a key, a folder or a pattern in the bucket.
func (s *S3) URL(key string) string { return s.In("bucket", key) }

// In is a URL in any bucket of the server.
func (s *S3) In(bucket, key string) string {
	o := url.Values{
		"endpoint": {s.server.URL}, "region": {"us-east-1"}, "use_path_style": {"true"},
	}
	return "s3://" + bucket + "/" + key + "?" + o.Encode()
}
