// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io/fs"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
)

// groups reads what the control groups of this process grant it, from the files
// below root: version 1, where each controller has a tree of its own, version 2,
// and both beside each other. A group cannot have more than those above it, so
// all of them count, as far as they are visible: a container often sees its own
// group as the top of the tree.
type groups struct{ root fs.FS }

// controllers are the files of a limit in the two versions.
type controller struct {
	name string
	v1   func(dir string) (float64, bool)
	v2   func(dir string) (float64, bool)
}

// cpus is the number of processors that a quota of CPU time amounts to, which
// may be a fraction; false if there is none.
func (g groups) cpus() (float64, bool) {
	return g.least(controller{
		"cpu",
		func(dir string) (float64, bool) {
			quota, ok := g.number(dir, "cpu.cfs_quota_us")
			period, also := g.number(dir, "cpu.cfs_period_us")
			return quota / period, ok && also && quota > 0 && period > 0
		},
		func(dir string) (float64, bool) {
			f := strings.Fields(g.text(path.Join(dir, "cpu.max"))) // "max 100000" is no limit
			if len(f) != 2 {
				return 0, false
			}
			quota, err := strconv.ParseFloat(f[0], 64)
			period, also := strconv.ParseFloat(f[1], 64)
			return quota / period, err == nil && also == nil && quota > 0 && period > 0
		},
	})
}

// memory is the least limit of memory in bytes; false if there is none.
func (g groups) memory() (float64, bool) {
	return g.least(controller{
		"memory",
		func(dir string) (float64, bool) { return g.number(dir, "memory.limit_in_bytes") },
		g.memoryLimit,
	})
}

// memoryLimit is that of one group of version 2: above high a group is not
// killed but slowed down without end, which is no better.
func (g groups) memoryLimit(dir string) (float64, bool) {
	hard, ok := g.number(dir, "memory.max")
	soft, also := g.number(dir, "memory.high")
	switch {
	case ok && also:
		return min(hard, soft), true
	case also:
		return soft, true
	}
	return hard, ok
}

// freeMemory is what the tightest group has left, in bytes: its limit without
// what it uses, where a cache of files not in use does not count, since it goes
// when there is need. False if no group has a limit.
func (g groups) freeMemory() (float64, bool) {
	left := func(dir, current, cache string, limit float64, ok bool) (float64, bool) {
		used, known := g.number(dir, current)
		for line := range strings.Lines(g.text(path.Join(dir, "memory.stat"))) {
			if f := strings.Fields(line); len(f) == 2 && f[0] == cache {
				n, _ := strconv.ParseFloat(f[1], 64)
				used -= min(n, used)
			}
		}
		return max(0, limit-used), ok && known
	}
	return g.least(controller{
		"memory",
		func(dir string) (float64, bool) {
			limit, ok := g.number(dir, "memory.limit_in_bytes")
			return left(dir, "memory.usage_in_bytes", "total_inactive_file", limit, ok)
		},
		func(dir string) (float64, bool) {
			limit, ok := g.memoryLimit(dir)
			return left(dir, "memory.current", "inactive_file", limit, ok)
		},
	})
}

// least is the smallest value of a controller in all groups of this process.
func (g groups) least(c controller) (float64, bool) {
	least := math.Inf(1)
	for _, dir := range g.dirs(c.name) {
		if v, ok := c.v1(dir); ok {
			least = min(least, v)
		}
	}
	for _, dir := range g.dirs("") {
		if v, ok := c.v2(dir); ok {
			least = min(least, v)
		}
	}
	return least, least < unlimited
}

// unlimited is less than what version 1 says where there is no limit of memory:
// the largest whole number of pages in an int64.
const unlimited = 1 << 60

// dirs are the folders of this process' groups, the innermost first, of a
// controller of version 1 or, with no name, of version 2.
func (g groups) dirs(controller string) []string {
	group, ok := g.group(controller)
	if !ok {
		return nil
	}
	top, at, ok := g.mount(controller)
	if !ok {
		return nil
	}
	rel, inside := strings.CutPrefix(group, strings.TrimSuffix(top, "/"))
	if !inside || rel != "" && rel[0] != '/' || strings.HasPrefix(rel, "/..") {
		rel = "" // the group is not below what is mounted: only the top is visible
	}
	var dirs []string
	for rel = path.Clean("/" + rel); rel != "/"; rel = path.Dir(rel) {
		dirs = append(dirs, path.Join(at, rel))
	}
	return append(dirs, at)
}

// group is the path of this process' group.
func (g groups) group(controller string) (string, bool) {
	for line := range strings.Lines(g.text("proc/self/cgroup")) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3) // number:controllers:path
		if len(f) == 3 && slices.Contains(strings.Split(f[1], ","), controller) {
			return f[2], true
		}
	}
	return "", false
}

// mount is where the tree of a controller is: which group is its top, and the
// folder of that.
func (g groups) mount(controller string) (top, at string, ok bool) {
	for line := range strings.Lines(g.text("proc/self/mountinfo")) {
		where, what, ok := strings.Cut(line, " - ")
		f, kind := strings.Fields(where), strings.Fields(what) // type, source, options
		if !ok || len(f) < 5 || len(kind) < 3 {
			continue
		}
		if controller == "" && kind[0] == "cgroup2" ||
			kind[0] == "cgroup" && controller != "" && slices.Contains(strings.Split(kind[2], ","), controller) {
			return unescaped(f[3]), strings.TrimPrefix(unescaped(f[4]), "/"), true
		}
	}
	return "", "", false
}

// unescaped is a path of mountinfo, which has spaces and the like in octal.
func unescaped(s string) string {
	for _, c := range []string{" ", "\t", "\n", "\\"} {
		s = strings.ReplaceAll(s, "\\"+octal(c[0]), c)
	}
	return s
}

func octal(c byte) string { return string([]byte{'0' + c>>6, '0' + c>>3&7, '0' + c&7}) }

func (g groups) number(dir, name string) (float64, bool) {
	n, err := strconv.ParseFloat(strings.TrimSpace(g.text(path.Join(dir, name))), 64)
	return n, err == nil
}

func (g groups) text(name string) string {
	text, _ := fs.ReadFile(g.root, name)
	return string(text)
}
