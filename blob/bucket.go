// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package blob

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	cloud "gocloud.dev/blob"
	"gocloud.dev/gcerrors"

	"pleach/internal/fault"
)

// Driver is what [Remote] has to know of one vendor's object store. The As
// functions handed to it give values of the vendor's own types, see
// https://gocloud.dev/concepts/as. Only Scheme is needed; without the others
// versions are told apart by size and time alone, and the vendor's client may
// repeat requests on its own, uncounted.
type Driver struct {
	Scheme string

	// Open opens the bucket that a URL without a path names. nil: as the gocloud
	// package does that registered itself for the scheme.
	Open func(ctx context.Context, url string) (*cloud.Bucket, error)

	// Context prepares the context of a request, so that it is made only once.
	Context func(context.Context) context.Context

	// Tag is what identifies the version in a line of a listing, in attributes or
	// in an answer; empty if that is not known.
	Tag func(as func(any) bool) string

	// BeforeRead prepares a request for bytes, so that it fails unless the object
	// has this tag, and is made only once.
	BeforeRead func(as func(any) bool, tag string) error

	// BeforeList prepares a request for a page of names, so that it is made only once.
	BeforeList func(as func(any) bool) error

	// Answer is the status and the header of the answer that an error stands for; 0
	// if it stands for none.
	Answer func(err error) (status int, h http.Header)
}

// pageSize is how many names are listed with one request, the most that S3 gives.
const pageSize = 1000

// bucket is a source behind gocloud.
type bucket struct {
	Driver
	place
	b *cloud.Bucket
}

func openBucket(ctx context.Context, d Driver, p place) (source, error) {
	open := d.Open
	if open == nil {
		open = cloud.OpenBucket
	}
	url := p.scheme + "://" + p.bucket
	if p.options != "" {
		url += "?" + p.options
	}
	b, err := open(ctx, url)
	if err != nil {
		return nil, fault.Configf("blob: opening %s://%s: %w", p.scheme, p.bucket, err)
	}
	return &bucket{d, place{scheme: p.scheme, bucket: p.bucket, options: p.options}, b}, nil
}

func (b *bucket) name(key string) string { return b.String() + "/" + key }
func (b *bucket) close() error           { return b.b.Close() }

// request prepares the context of a request.
func (b *bucket) request(ctx context.Context) context.Context {
	if b.Context == nil {
		return ctx
	}
	return b.Context(ctx)
}

// guard makes an error of a panic: answers are read by code of others, and not
// all of it bears an answer that lacks something.
func guard(err *error) {
	if v := recover(); v != nil {
		*err = &failure{err: fmt.Errorf("the vendor's client failed: %v", v), kind: fault.Data}
	}
}

func (b *bucket) page(ctx context.Context, prefix, token string) (objs []Object, next string, err error) {
	defer guard(&err)
	t := []byte(token)
	if token == "" {
		t = cloud.FirstPageToken
	}
	lines, more, err := b.b.ListPage(b.request(ctx), t, pageSize, b.listOptions(prefix))
	if err != nil {
		return nil, "", b.judge(err)
	}
	for _, l := range lines {
		if !l.IsDir {
			objs = append(objs, Object{key: l.Key, Size: l.Size, Tag: b.tag(l.As, l.ModTime)})
		}
	}
	return objs, string(more), nil
}

func (b *bucket) listOptions(prefix string) *cloud.ListOptions {
	return &cloud.ListOptions{Prefix: prefix, BeforeList: b.BeforeList}
}

// stat asks for a listing that begins with the key, since its answer says why it
// is refused, and that of a request for attributes does not. Whoever may read but
// not list is helped all the same.
func (b *bucket) stat(ctx context.Context, key string) (o Object, err error) {
	defer guard(&err)
	ctx = b.request(ctx)
	lines, _, err := b.b.ListPage(ctx, cloud.FirstPageToken, 1, b.listOptions(key))
	if f := b.judge(err); f != nil {
		if f.hint == "" {
			return Object{}, f
		}
		a, second := b.b.Attributes(ctx, key)
		if second != nil {
			return Object{}, f
		}
		return Object{key: key, Size: a.Size, Tag: b.tag(a.As, a.ModTime)}, nil
	}
	if len(lines) == 0 || lines[0].Key != key || lines[0].IsDir {
		return Object{}, &failure{err: errMissing, kind: fault.Config}
	}
	return Object{key: key, Size: lines[0].Size, Tag: b.tag(lines[0].As, lines[0].ModTime)}, nil
}

func (b *bucket) read(ctx context.Context, o Object, off, n int64) (body io.ReadCloser, err error) {
	defer guard(&err)
	r, err := b.b.NewRangeReader(b.request(ctx), o.key, off, n, &cloud.ReaderOptions{
		BeforeRead: func(as func(any) bool) error {
			if b.BeforeRead == nil {
				return nil
			}
			return b.BeforeRead(as, o.Tag)
		},
	})
	if err != nil {
		return nil, b.judge(err)
	}
	if tag := b.tag(r.As, r.ModTime()); r.Size() != o.Size || tag != o.Tag {
		_ = r.Close()
		return nil, changed(r.Size(), tag, o)
	}
	return r, nil
}

// tag identifies a version.
func (b *bucket) tag(as func(any) bool, at time.Time) string {
	if b.Tag != nil {
		if t := b.Tag(as); t != "" {
			return t
		}
	}
	return strconv.FormatInt(at.UnixNano(), 10)
}

func changed(size int64, tag string, o Object) *failure {
	return &failure{
		err: fmt.Errorf("%w: got %d bytes, version %s, want %d bytes, version %s",
			errChanged, size, tag, o.Size, o.Tag),
		kind: fault.Data,
	}
}

// judge is nil for nil.
func (b *bucket) judge(err error) *failure {
	if err == nil {
		return nil
	}
	var status int
	var h http.Header
	if b.Answer != nil {
		status, h = b.Answer(err)
	}
	if status == 0 {
		status = coded(err)
	}
	if status != 0 {
		return answered(status, h, unframed(err))
	}
	f := offLine(err)
	f.err = unframed(f.err)
	return f
}

// coded is the status of HTTP that means what gocloud says.
func coded(err error) int {
	switch gcerrors.Code(err) {
	case gcerrors.NotFound:
		return http.StatusNotFound
	case gcerrors.PermissionDenied:
		return http.StatusForbidden
	case gcerrors.FailedPrecondition:
		return http.StatusPreconditionFailed
	case gcerrors.ResourceExhausted:
		return http.StatusTooManyRequests
	case gcerrors.Internal:
		return http.StatusInternalServerError
	}
	return 0
}

// unframed is an error without what gocloud puts around it: the key, which the
// message has already, and a code.
func unframed(err error) error {
	if m, ok := err.(interface{ Unwrap() []error }); ok {
		if all := m.Unwrap(); len(all) > 0 && all[0] != nil {
			return all[0]
		}
	}
	return err
}
