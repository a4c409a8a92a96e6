// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package blob

import (
	"net/url"
	"path"
	"strings"

	"pleach/internal/fault"
)

const hubScheme = "hf"

// place is a URL, taken apart.
type place struct {
	scheme  string
	bucket  string // on the hub "org/name" or "datasets/org/name"
	version string // the revision on the hub, else empty
	key     string // an object, a folder or a pattern; empty: everything
	options string // behind the "?"
}

// cutScheme splits scheme://rest. A path of this machine may hold "://" too, but
// not behind a word of letters and digits alone.
func cutScheme(s string) (scheme, rest string, ok bool) {
	scheme, rest, ok = strings.Cut(s, "://")
	ok = ok && scheme != ""
	for _, c := range scheme {
		ok = ok && (c >= 'a' && c <= 'z' || c >= '0' && c <= '9')
	}
	return scheme, rest, ok
}

// parsePlace takes a URL apart. Names of objects stand in it as they are.
func parsePlace(s string) (place, error) {
	scheme, rest, ok := cutScheme(s)
	if !ok {
		return place{}, fault.Configf("blob: %q: want a URL such as s3://bucket/folder/*.jsonl", s)
	}
	p := place{scheme: scheme}
	rest, p.options, _ = strings.Cut(rest, "?")
	if scheme == hubScheme {
		if err := p.parseHub(s, rest); err != nil {
			return place{}, err
		}
	} else {
		p.bucket, p.key, _ = strings.Cut(rest, "/")
	}
	if p.bucket == "" {
		return place{}, fault.Configf("blob: %s: got no bucket, want %s://bucket/…", s, scheme)
	}
	if strings.HasPrefix(p.key, "/") {
		return place{}, fault.Configf("blob: %s: got two slashes behind the bucket, want one", s)
	}
	if _, err := path.Match(p.key, ""); err != nil {
		return place{}, fault.Configf("blob: %s: the pattern has no end: %w", s, err)
	}
	if _, err := url.ParseQuery(p.options); err != nil {
		return place{}, fault.Configf("blob: %s: options: %w", s, err)
	}
	return p, nil
}

// parseHub takes [datasets/]org/name[@revision][/path] apart. A revision has no
// slash, except those that begin with refs/, which have three parts.
func (p *place) parseHub(s, rest string) error {
	if p.options != "" {
		return fault.Configf("blob: %s: got options, but the hub has none", s)
	}
	kind, rest := "", rest
	for _, k := range []string{"datasets/", "models/"} {
		if r, ok := strings.CutPrefix(rest, k); ok {
			kind, rest = k, r
		}
	}
	if kind == "models/" {
		kind = ""
	}
	org, rest, _ := strings.Cut(rest, "/")
	name, key, _ := strings.Cut(rest, "/")
	name, p.version, _ = strings.Cut(name, "@")
	if org == "" || name == "" || strings.Contains(org, "@") {
		return fault.Configf("blob: %s: want hf://org/name[@revision] or hf://datasets/org/name[@revision][/path]", s)
	}
	if p.version == "refs" {
		parts := strings.SplitN(key, "/", 3)
		if len(parts) < 2 {
			return fault.Configf("blob: %s: want a revision such as refs/pr/1 behind the @", s)
		}
		p.version += "/" + parts[0] + "/" + parts[1]
		key = strings.Join(parts[2:], "/")
	}
	if v, err := url.PathUnescape(p.version); err == nil {
		p.version = v
	}
	p.bucket, p.key = kind+org+"/"+name, key
	return nil
}

// String is the URL without options, which may be private.
func (p place) String() string {
	s := p.scheme + "://" + p.bucket
	if p.version != "" {
		s += "@" + p.version
	}
	if p.key != "" {
		s += "/" + p.key
	}
	return s
}

// source is the same for all places in one bucket opened alike.
func (p place) source() string {
	return p.scheme + "://" + p.bucket + "@" + p.version + "?" + p.options
}

const meta = `*?[`

func (p place) pattern() bool { return strings.ContainsAny(p.key, meta) }
func (p place) folder() bool  { return strings.HasSuffix(p.key, "/") }

// prefix is what the keys begin with that match can like.
func (p place) prefix() string {
	if i := strings.IndexAny(p.key, meta); i >= 0 {
		return p.key[:i]
	}
	if p.key == "" || p.folder() {
		return p.key
	}
	return p.key + "/"
}

// match says whether a key is asked for. Names that end in a slash are folders
// that some tools make.
func (p place) match(key string) bool {
	if strings.HasSuffix(key, "/") {
		return false
	}
	if !p.pattern() {
		return strings.HasPrefix(key, p.prefix())
	}
	return matchNames(strings.Split(p.key, "/"), strings.Split(key, "/"))
}

// Match says whether a name, or if the pattern has no slash its last element,
// matches a pattern as in [Remote.List].
func Match(pattern, name string) bool {
	if !strings.Contains(pattern, "/") {
		name = path.Base(name)
	}
	return matchNames(strings.Split(pattern, "/"), strings.Split(name, "/"))
}

// matchNames compares names between slashes; the pattern "**" stands for any
// number of them. Where a name does not match, the last "**" takes one name more:
// those before it need not be tried again.
func matchNames(pattern, names []string) bool {
	i, j := 0, 0
	last, taken := -1, 0 // the last "**", and the names up to the end of what it stands for
	for j < len(names) {
		fits := false
		if i < len(pattern) && pattern[i] != "**" {
			fits, _ = path.Match(pattern[i], names[j])
		}
		switch {
		case i < len(pattern) && pattern[i] == "**":
			last, taken = i, j
			i++
		case fits:
			i, j = i+1, j+1
		case last >= 0:
			taken++
			i, j = last+1, taken
		default:
			return false
		}
	}
	for i < len(pattern) && pattern[i] == "**" {
		i++
	}
	return i == len(pattern)
}

// rel is a key below the folder that was listed, or below the last folder
// without a wildcard.
func (p place) rel(key string) string {
	root := p.prefix()
	if key == p.key || p.pattern() {
		root = root[:strings.LastIndex(p.key[:min(len(root), len(p.key))], "/")+1]
	}
	return strings.TrimPrefix(key, root)
}

func (p place) nothing() error {
	if p.pattern() {
		return fault.Configf("blob: %s: no object matches", p)
	}
	return fault.Configf("blob: %s: no such object, and none below it", p)
}
