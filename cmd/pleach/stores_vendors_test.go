// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"pleach/blob"
	"pleach/internal/fault"
)

// vendor is as little of a server of Google or Azure as their clients need to
// list and to read.
type vendor struct {
	mu      sync.Mutex
	objects map[string]string
	version int // of all objects
	fails   int // so many answers are 503
	asked   int
	noList  bool
}

func (v *vendor) text(key string) (string, bool) {
	s, ok := v.objects[key]
	return s, ok
}

// bad answers what is to go wrong.
func (v *vendor) bad(w http.ResponseWriter) bool {
	v.asked++
	if v.fails > 0 {
		v.fails--
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	}
	return false
}

// google speaks the JSON API for listings and the XML API for bytes.
func (v *vendor) google(w http.ResponseWriter, q *http.Request) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.bad(w) {
		return
	}
	if strings.HasSuffix(q.URL.Path, "/b/bucket/o") {
		items := []map[string]string{}
		for _, k := range slices.Sorted(maps.Keys(v.objects)) {
			if strings.HasPrefix(k, q.URL.Query().Get("prefix")) {
				items = append(items, map[string]string{
					"name": k, "size": strconv.Itoa(len(v.objects[k])),
					"generation": strconv.Itoa(v.version), "updated": "2026-01-01T00:00:00Z",
				})
			}
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"items": items})
		return
	}
	text, ok := v.text(strings.TrimPrefix(q.URL.Path, "/bucket/"))
	want := q.Header.Get("X-Goog-If-Generation-Match")
	switch {
	case !ok:
		http.NotFound(w, q)
	case want != strconv.Itoa(v.version):
		w.WriteHeader(http.StatusPreconditionFailed)
	default:
		w.Header().Set("X-Goog-Generation", strconv.Itoa(v.version))
		w.Header().Set("X-Goog-Stored-Content-Length", strconv.Itoa(len(text)))
		http.ServeContent(w, q, "", time.Unix(1e9, 0), strings.NewReader(text))
	}
}

func (v *vendor) etag() string { return fmt.Sprintf("0x%X", v.version) }

func (v *vendor) azure(w http.ResponseWriter, q *http.Request) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.bad(w) {
		return
	}
	if q.URL.Query().Get("comp") == "list" {
		v.azureList(w, q.URL.Query().Get("prefix"))
		return
	}
	text, ok := v.text(strings.TrimPrefix(q.URL.Path, "/account/box/"))
	switch {
	case !ok:
		w.Header().Set("X-Ms-Error-Code", "BlobNotFound")
		w.WriteHeader(http.StatusNotFound)
	case q.Header.Get("If-Match") != "" && q.Header.Get("If-Match") != `"`+v.etag()+`"`:
		w.Header().Set("X-Ms-Error-Code", "ConditionNotMet")
		w.WriteHeader(http.StatusPreconditionFailed)
	default:
		q.Header.Set("Range", q.Header.Get("X-Ms-Range"))
		q.Header.Del("If-Match")
		w.Header().Set("X-Ms-Creation-Time", "Sun, 09 Sep 2001 01:46:40 GMT")
		w.Header().Set("ETag", `"`+v.etag()+`"`)
		http.ServeContent(w, q, "", time.Unix(1e9, 0), strings.NewReader(text))
	}
}

func (v *vendor) azureList(w http.ResponseWriter, prefix string) {
	if v.noList {
		w.Header().Set("X-Ms-Error-Code", "AuthorizationPermissionMismatch")
		w.WriteHeader(http.StatusForbidden)
		return
	}
	var b bytes.Buffer
	b.WriteString(`<?xml version="1.0"?><EnumerationResults ContainerName="box"><Blobs>`)
	for _, k := range slices.Sorted(maps.Keys(v.objects)) {
		if strings.HasPrefix(k, prefix) {
			fmt.Fprintf(&b, "<Blob><Name>%s</Name><Properties><Last-Modified>Sun, 09 Sep 2001 01:46:40 GMT</Last-Modified>"+
				"<Etag>%s</Etag><Content-Length>%d</Content-Length></Properties></Blob>", k, v.etag(), len(v.objects[k]))
		}
	}
	b.WriteString("</Blobs><NextMarker/></EnumerationResults>")
	w.Header().Set("Content-Type", "application/xml")
	_, _ = w.Write(b.Bytes())
}

// TestVendors: with Google's and Azure's clients too an object is listed, read in
// ranges, pinned to its version, and asked for again after a bad answer.
func TestVendors(t *testing.T) {
	v := &vendor{objects: map[string]string{"x/a.txt": "0123456789", "x/b/c.txt": "second", "y": ""}, version: 17}
	google := httptest.NewServer(http.HandlerFunc(v.google))
	defer google.Close()
	azure := httptest.NewServer(http.HandlerFunc(v.azure))
	defer azure.Close()
	t.Setenv("STORAGE_EMULATOR_HOST", strings.TrimPrefix(google.URL, "http://"))
	t.Setenv("AZURE_STORAGE_ACCOUNT", "account")
	t.Setenv("AZURE_STORAGE_KEY", "a2V5")
	for _, url := range []string{
		"gs://bucket/x",
		"azblob://box/x?protocol=http&localemu=true&domain=" + strings.TrimPrefix(azure.URL, "http://"),
	} {
		r := stores(t, blob.Options{})
		objs, err := r.List(t.Context(), url)
		if err != nil || len(objs) != 2 || objs[1].Rel != "b/c.txt" || objs[0].Size != 10 {
			t.Errorf("%s: got %v, %v", url, objs, err)
			continue
		}
		f, err := r.Open(t.Context(), objs[0])
		if err != nil {
			t.Fatal(err)
		}
		v.fails = 2
		b := make([]byte, 4)
		if n, err := f.ReadAt(b, 3); string(b[:n]) != "3456" || err != nil {
			t.Errorf("%s: got %q, %v", url, b[:n], err)
		}
		if n := r.Stats().Retries[blob.Failing]; n != 2 {
			t.Errorf("%s: got %d retries, want 2", url, n)
		}
		var w strings.Builder
		if err := r.Copy(t.Context(), objs[0], 6, &w); w.String() != "6789" || err != nil {
			t.Errorf("%s: got %q, %v", url, w.String(), err)
		}
		v.version++
		if err := r.Copy(t.Context(), objs[1], 0, &w); err == nil || !strings.Contains(err.Error(), "it changed since") || !errors.Is(err, fault.Data) {
			t.Errorf("%s: another version: got %v", url, err)
		}
		v.fails = 3
		if objs, err := r.List(t.Context(), strings.Replace(url, "/x", "/y", 1)); len(objs) != 1 || err != nil {
			t.Errorf("%s: one object: got %v, %v", url, objs, err)
		}
		if _, err := r.List(t.Context(), strings.Replace(url, "/x", "/z", 1)); !errors.Is(err, fault.Config) {
			t.Errorf("%s: nothing there: got %v", url, err)
		}
	}
}

// TestReadNotList: who may read an object but not list its bucket, reads it.
func TestReadNotList(t *testing.T) {
	v := &vendor{objects: map[string]string{"x": "text"}, version: 5, noList: true}
	s := httptest.NewServer(http.HandlerFunc(v.azure))
	defer s.Close()
	t.Setenv("AZURE_STORAGE_ACCOUNT", "account")
	t.Setenv("AZURE_STORAGE_KEY", "a2V5")
	options := "?protocol=http&localemu=true&domain=" + strings.TrimPrefix(s.URL, "http://")
	r := stores(t, blob.Options{})
	objs, err := r.List(t.Context(), "azblob://box/x"+options)
	if err != nil {
		t.Fatal(err)
	}
	var w strings.Builder
	if err := r.Copy(t.Context(), objs[0], 0, &w); w.String() != "text" || err != nil {
		t.Errorf("got %q, %v", w.String(), err)
	}
	_, err = r.List(t.Context(), "azblob://box/x*"+options)
	if err == nil || !errors.Is(err, fault.Config) || !strings.Contains(err.Error(), "no permission") || r.Stats().Requests > 6 {
		t.Errorf("got %v after %d requests", err, r.Stats().Requests)
	}
}
