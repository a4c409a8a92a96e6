// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// place is where a value came from.
type place struct {
	from      string // "command line", "default", the base name of a file, or a caller's word
	line, col int
	arg       string
}

func (p place) String() string {
	if p.line > 0 {
		return fmt.Sprintf("%s:%d", p.from, p.line)
	}
	return p.from
}

// Origin says where the value of a key came from: "command line",
// "base.yaml:12", "default", or what [Recipe.Set] was told. It is "" for a key
// without a value.
func (r *Recipe) Origin(key string) string { return r.place[key].String() }

// Given says whether a key has its value from the command line or the recipe.
// Such a value stands above what a model directory says; see [Recipe.Set].
func (r *Recipe) Given(key string) bool {
	p, ok := r.place[key]
	return ok && (p.arg != "" || p.line > 0)
}

// Set gives a key a value and says where it came from: a model directory, a
// plan, a count of tokens. The value is written as in a recipe, and checked the
// same. Whether the user's own word counts for more is the caller's to ask, with
// [Recipe.Given]. Only keys with a single value can be set.
func (r *Recipe) Set(key, value, origin string) error {
	f := find(r.fields(), strings.Split(key, "."))
	if f == nil {
		return fmt.Errorf("config: setting %s: no such key", key)
	}
	var doc yaml.Node
	if err := yaml.Load([]byte(value), &doc); err != nil || doc.Content[0].Kind != yaml.ScalarNode {
		return fmt.Errorf("config: setting %s: got %q, want a single value", key, value)
	}
	d := newReader(r, r.File, nil)
	d.quiet = true // no line of the recipe is to blame
	if d.value(key, doc.Content[0], f); len(d.errs) > 0 {
		return joined(d.errs)
	}
	r.place[key] = place{from: origin}
	return nil
}

// find is the field of a key that holds a single value.
func find(fields []field, path []string) *field {
	i := slices.IndexFunc(fields, func(f field) bool { return f.key == path[0] })
	if i < 0 || fields[i].plan != "" {
		return nil
	}
	f := &fields[i]
	path = path[1:]
	var sub []field
	switch to := f.to.(type) {
	case choice:
		for _, k := range to.kinds() {
			if len(path) > 1 && k.name == path[0] && k.name == *to.chosen() {
				sub, path = k.fields, path[1:]
				break
			}
		}
	case list:
		for i := range to.size() {
			name := fmt.Sprint(i)
			if m, ok := to.(dict); ok {
				name = *m.name(i)
			}
			if len(path) > 1 && name == path[0] {
				sub, path = to.at(i).fields(), path[1:]
				break
			}
		}
	case group:
		sub = to.fields()
	default:
		if len(path) == 0 {
			return f
		}
	}
	if sub == nil || len(path) == 0 {
		return nil
	}
	return find(sub, path)
}

// values is every key that has a value, with the value as it would be written.
func (r *Recipe) values() map[string]string {
	m := map[string]string{}
	flatten(m, "", r.fields())
	return m
}

func flatten(m map[string]string, key string, fields []field) {
	for i := range fields {
		f := &fields[i]
		k := join(key, f.key)
		switch to := f.to.(type) {
		case choice:
			m[k] = *to.chosen()
			for _, kind := range to.kinds() {
				if kind.name == *to.chosen() {
					flatten(m, join(k, kind.name), kind.fields)
				}
			}
		case list:
			for i := range to.size() {
				name := fmt.Sprint(i)
				if d, ok := to.(dict); ok {
					name = *d.name(i)
				}
				flatten(m, join(k, name), to.at(i).fields())
			}
		case group:
			if !f.omit {
				flatten(m, k, to.fields())
			}
		default:
			if s, ok := f.print(); ok {
				m[k] = s
			}
		}
	}
}

// print is the value of a field as YAML, and whether it has one.
func (f *field) print() (string, bool) {
	if f.omit || f.plan != "" {
		return "", false
	}
	switch to := f.to.(type) {
	case pathTo:
		return quote(*to.s), *to.s != ""
	case textTo:
		return quote(*to.s), *to.s != ""
	case pathsTo:
		if len(*to.s) == 1 {
			return quote((*to.s)[0]), true
		}
		return "[" + strings.Join(each(*to.s, quote), ", ") + "]", len(*to.s) > 0
	case *[]string:
		return "[" + strings.Join(each(*to, quote), ", ") + "]", true
	case pair:
		return "[" + number(to.x[0]) + ", " + number(to.x[1]) + "]", true
	}
	v := reflect.ValueOf(f.to).Elem()
	if f.def == "" && v.IsZero() {
		return "", false
	}
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	switch x := v.Interface().(type) {
	case string:
		return quote(x), true
	case float64:
		return number(x), true
	default:
		return fmt.Sprint(x), true
	}
}

func each(s []string, f func(string) string) []string {
	t := make([]string, len(s))
	for i := range s {
		t[i] = f(s[i])
	}
	return t
}

// Diff names the keys whose values differ between two recipes, sorted. Where a
// value came from does not matter.
func Diff(a, b *Recipe) []string {
	x, y := a.values(), b.values()
	var keys []string
	for k, v := range x {
		if w, ok := y[k]; !ok || v != w {
			keys = append(keys, k)
		}
	}
	for k := range y {
		if _, ok := x[k]; !ok {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return keys
}

// MayChange says whether a run may go on with another value of a key.
func MayChange(key string) bool {
	for _, k := range []string{
		"train.until", "train.micro", "train.recompute",
		"parallel", "engine", "checkpoint", "evaluate", "price", "out",
	} {
		if key == k || strings.HasPrefix(key, k+".") {
			return true
		}
	}
	return false
}

// Hash names what a run is: two recipes have the same hash if and only if Diff
// names no key but those that [MayChange]. Formatting, comments and the order of
// keys do not count. It is 64 hexadecimal digits, of SHA-256.
func (r *Recipe) Hash() string {
	h := sha256.New()
	m := r.values()
	for _, k := range slices.Sorted(maps.Keys(m)) {
		if !MayChange(k) {
			fmt.Fprintf(h, "%q: %q\n", k, m[k])
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}
