// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"

	"cloud.google.com/go/storage"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	azure "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	cloud "gocloud.dev/blob"
	_ "gocloud.dev/blob/azureblob" // registers azblob://
	"gocloud.dev/blob/gcsblob"
	_ "gocloud.dev/blob/s3blob" // registers s3://
	"gocloud.dev/gcp"
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

// newRemote reads objects with the cache of this user; PLEACH_CACHE_LIMIT is how
// much it may hold, 0 for none.
func newRemote(warn func(string)) (*blob.Remote, error) {
	o := blob.Options{Drivers: drivers(), Hub: blob.HubFromEnv(), Cache: cacheFolder("objects"), Warn: warn}
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
			*more = append(*more, func(o *s3.Options) {
				o.RetryMaxAttempts = 1
				o.DisableLogOutputChecksumValidationSkipped = true // it would say so for each range
			})
		}
	}
	return blob.Driver{
		Scheme: "s3",
		Tag:    amazonTag,
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
			case strings.Contains(err.Error(), "get credentials"): // it has no type of its own
				return http.StatusUnauthorized, nil
			case errors.As(err, &e) && e.Response != nil:
				return e.Response.StatusCode, e.Response.Header
			}
			return 0, nil
		},
	}
}

// amazonTag is an ETag, in quotation marks as it is sent.
func amazonTag(as func(any) bool) string {
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
}

// openGoogle opens a bucket with the credentials of this machine, or with none:
// gs://bucket?anonymous=true. The opener of gocloud prints on standard output.
func openGoogle(ctx context.Context, at string) (*cloud.Bucket, error) {
	u, err := url.Parse(at)
	if err != nil {
		return nil, err
	}
	anonymous := os.Getenv("STORAGE_EMULATOR_HOST") != ""
	for name, values := range u.Query() {
		if name != "anonymous" {
			return nil, fmt.Errorf("option %q: want none but anonymous", name)
		}
		if anonymous, err = strconv.ParseBool(values[0]); err != nil {
			return nil, fmt.Errorf("option anonymous: %w", err)
		}
	}
	client := gcp.NewAnonymousHTTPClient(gcp.DefaultTransport())
	if !anonymous {
		creds, err := gcp.DefaultCredentials(ctx)
		if err != nil {
			return nil, fmt.Errorf("%w; a public bucket can be read with ?anonymous=true", err)
		}
		if client, err = gcp.NewHTTPClient(gcp.DefaultTransport(), gcp.CredentialsTokenSource(creds)); err != nil {
			return nil, err
		}
	}
	b, err := gcsblob.OpenBucket(ctx, client, u.Host, nil)
	var c *storage.Client
	if err == nil && b.As(&c) {
		c.SetRetry(storage.WithPolicy(storage.RetryNever)) // blob does that, and counts
	}
	return b, err
}

// google is Google Cloud Storage. Versions are generations.
func google() blob.Driver {
	generation := func(n int64) string { return strconv.FormatInt(n, 10) }
	return blob.Driver{
		Scheme: "gs",
		Open:   openGoogle,
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
			h := (*object).ReadCompressed(true)
			if n, err := strconv.ParseInt(tag, 10, 64); err == nil {
				h = h.If(storage.Conditions{GenerationMatch: n})
			}
			*object = h
			return nil
		},
		Answer: func(err error) (int, http.Header) {
			var e *googleapi.Error
			if !errors.As(err, &e) {
				return 0, nil
			}
			return e.Code, e.Header
		},
	}
}

// microsoft is Azure Blob Storage.
func microsoft() blob.Driver {
	return blob.Driver{
		Scheme: "azblob",
		Open: func(ctx context.Context, url string) (*cloud.Bucket, error) {
			b, err := cloud.OpenBucket(ctx, url)
			if err != nil {
				err = fmt.Errorf("%w; the account is AZURE_STORAGE_ACCOUNT or ?storage_account=…", err)
			}
			return b, err
		},
		Context: func(ctx context.Context) context.Context {
			return policy.WithRetryOptions(ctx, policy.RetryOptions{MaxRetries: -1})
		},
		Tag: microsoftTag,
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

// microsoftTag is an ETag without quotation marks: it is listed without them and
// read with them.
func microsoftTag(as func(any) bool) string {
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
	return strings.Trim(string(*tag), `"`)
}
