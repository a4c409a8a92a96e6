// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"net/http"
	"os"
	"strconv"
	"strings"

	"cloud.google.com/go/storage"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	azure "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	_ "gocloud.dev/blob/azureblob" // registers azblob://
	_ "gocloud.dev/blob/gcsblob"   // registers gs://
	_ "gocloud.dev/blob/s3blob"    // registers s3://
	"google.golang.org/api/googleapi"

	"pleach/blob"
	"pleach/internal/fault"
	"pleach/internal/unit"
)

// drivers are the object stores that this program can read. A site that wants
// fewer of them, and a smaller program, takes lines out of this file.
func drivers() []blob.Driver {
	return []blob.Driver{amazon(), google(), microsoft()}
}

// newRemote reads objects with the cache of this user: PLEACH_CACHE is its
// folder, PLEACH_CACHE_LIMIT how much it may hold, 0 for none.
func newRemote(warn func(string)) (*blob.Remote, error) {
	o := blob.Options{Drivers: drivers(), Hub: blob.HubFromEnv(), Cache: blob.DefaultCache(), Warn: warn}
	if s := os.Getenv("PLEACH_CACHE_LIMIT"); s != "" {
		n, err := unit.Parse[unit.Bytes](s)
		if err != nil {
			return nil, fault.Configf("PLEACH_CACHE_LIMIT: %w", err)
		}
		if o.CacheLimit = int64(n); n == 0 {
			o.Cache = ""
		}
	}
	return blob.NewRemote(o), nil
}

// amazon is S3 and what speaks like it.
func amazon() blob.Driver {
	once := func(as func(any) bool) {
		var more *[]func(*s3.Options)
		if as(&more) {
			*more = append(*more, func(o *s3.Options) { o.RetryMaxAttempts = 1 })
		}
	}
	return blob.Driver{
		Scheme: "s3",
		Tag: func(as func(any) bool) string {
			var line s3types.Object
			var head s3.HeadObjectOutput
			var read s3.GetObjectOutput
			for _, c := range []struct {
				v   any
				tag **string
			}{{&line, &line.ETag}, {&read, &read.ETag}, {&head, &head.ETag}} {
				if as(c.v) && *c.tag != nil {
					return **c.tag
				}
			}
			return ""
		},
		BeforeRead: func(as func(any) bool, tag string) error {
			once(as)
			var in *s3.GetObjectInput
			if as(&in) && strings.HasPrefix(tag, `"`) {
				in.IfMatch = &tag
			}
			return nil
		},
		BeforeList: func(as func(any) bool) error { once(as); return nil },
		Answer: func(err error) (int, http.Header) {
			var e *smithyhttp.ResponseError
			switch {
			case errors.As(err, &e) && e.Response != nil:
				return e.Response.StatusCode, e.Response.Header
			case strings.Contains(err.Error(), "get credentials"): // it has no type of its own
				return http.StatusUnauthorized, nil
			}
			return 0, nil
		},
	}
}

// google is Google Cloud Storage. Versions are generations.
func google() blob.Driver {
	generation := func(n int64) string { return strconv.FormatInt(n, 10) }
	return blob.Driver{
		Scheme: "gs",
		Tag: func(as func(any) bool) string {
			var line storage.ObjectAttrs
			var read *storage.Reader
			switch {
			case as(&line):
				return generation(line.Generation)
			case as(&read):
				return generation(read.Attrs.Generation)
			}
			return ""
		},
		BeforeRead: func(as func(any) bool, tag string) error {
			var object **storage.ObjectHandle
			if !as(&object) {
				return nil
			}
			// Compressed objects are read as they lie: ranges are of those bytes.
			h := (*object).ReadCompressed(true).Retryer(storage.WithPolicy(storage.RetryNever))
			if n, err := strconv.ParseInt(tag, 10, 64); err == nil {
				h = h.If(storage.Conditions{GenerationMatch: n})
			}
			*object = h
			return nil
		},
		Answer: func(err error) (int, http.Header) {
			var e *googleapi.Error
			if errors.As(err, &e) {
				return e.Code, e.Header
			}
			if strings.Contains(err.Error(), "could not find default credentials") {
				return http.StatusUnauthorized, nil
			}
			return 0, nil
		},
	}
}

// microsoft is Azure Blob Storage. Its client repeats a request up to three times
// before we hear of it.
func microsoft() blob.Driver {
	return blob.Driver{
		Scheme: "azblob",
		Tag: func(as func(any) bool) string {
			var line container.BlobItem
			var head azure.GetPropertiesResponse
			var read azure.DownloadStreamResponse
			var tag *azcore.ETag
			switch {
			case as(&line) && line.Properties != nil:
				tag = line.Properties.ETag
			case as(&head):
				tag = head.ETag
			case as(&read):
				tag = read.ETag
			}
			if tag == nil {
				return ""
			}
			return strings.Trim(string(*tag), `"`) // listed without, read with them
		},
		BeforeRead: func(as func(any) bool, tag string) error {
			var o *azure.DownloadStreamOptions
			if as(&o) && strings.HasPrefix(tag, "0x") {
				etag := azcore.ETag(`"` + tag + `"`)
				o.AccessConditions = &azure.AccessConditions{
					ModifiedAccessConditions: &azure.ModifiedAccessConditions{IfMatch: &etag},
				}
			}
			return nil
		},
		Answer: func(err error) (int, http.Header) {
			var e *azcore.ResponseError
			if !errors.As(err, &e) {
				return 0, nil
			}
			if e.RawResponse == nil {
				return e.StatusCode, nil
			}
			return e.StatusCode, e.RawResponse.Header
		},
	}
}
