// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
	"testing/fstest"

	"pleach/engine/cpu"
	"pleach/kernel"
)

// machineFiles is a file system of these files, NAME: text.
func machineFiles(files map[string]string) fstest.MapFS {
	m := fstest.MapFS{}
	for name, text := range files {
		m[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return m
}

const (
	mount1 = "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n" +
		"32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct\n" +
		"33 31 0:30 / /sys/fs/cgroup/memory rw,relatime shared:7 master:2 - cgroup cgroup rw,memory\n"
	mount2 = "29 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
	none1  = "9223372036854771712\n" // version 1 without a limit
)

// TestGroups reads limits of processors and memory from trees as systems have
// them. Zero is no limit; memory in MiB.
func TestGroups(t *testing.T) {
	const c, v, w = "sys/fs/cgroup/cpu,cpuacct", "sys/fs/cgroup/memory", "sys/fs/cgroup"
	for _, tc := range []struct {
		name  string
		files map[string]string
		cpus  float64
		limit float64
		free  float64
	}{
		{"no groups", map[string]string{"proc/self/cgroup": "", "proc/self/mountinfo": mount2}, 0, 0, 0},
		{"nothing mounted", map[string]string{"proc/self/cgroup": "0::/a\n"}, 0, 0, 0},
		{"version 1, no limits", map[string]string{
			"proc/self/cgroup": "5:cpu,cpuacct:/\n4:memory:/\n0::/\n", "proc/self/mountinfo": mount1,
			c + "/cpu.cfs_quota_us": "-1\n", c + "/cpu.cfs_period_us": "100000\n",
			v + "/memory.limit_in_bytes": none1, v + "/memory.usage_in_bytes": "4096\n",
		}, 0, 0, 0},
		{"version 1, the group above is tighter", map[string]string{
			"proc/self/cgroup": "5:cpu,cpuacct:/a/b\n4:memory:/a/b\n", "proc/self/mountinfo": mount1,
			c + "/a/b/cpu.cfs_quota_us": "200000\n", c + "/a/b/cpu.cfs_period_us": "100000\n",
			c + "/a/cpu.cfs_quota_us": "75000\n", c + "/a/cpu.cfs_period_us": "50000\n",
			v + "/a/b/memory.limit_in_bytes": none1, v + "/a/b/memory.usage_in_bytes": "1048576\n",
			v + "/a/memory.limit_in_bytes": "104857600\n", v + "/a/memory.usage_in_bytes": "52428800\n",
			v + "/a/memory.stat": "inactive_file 1\ntotal_inactive_file 10485760\n",
		}, 1.5, 100, 60},
		{"version 1 in a container that sees only its own group", map[string]string{
			"proc/self/cgroup":             "5:cpu,cpuacct:/docker/x\n4:memory:/docker/x\n",
			"proc/self/mountinfo":          strings.ReplaceAll(mount1, " / /sys", " /docker/x /sys"),
			c + "/cpu.cfs_quota_us":        "50000\n",
			c + "/cpu.cfs_period_us":       "100000\n",
			v + "/memory.limit_in_bytes":   "67108864\n",
			v + "/memory.usage_in_bytes":   "16777216\n",
			v + "/x/memory.usage_in_bytes": "1\n",
		}, 0.5, 64, 48},
		{"version 2, no limits", map[string]string{
			"proc/self/cgroup": "0::/user.slice/a.scope\n", "proc/self/mountinfo": mount2,
			w + "/user.slice/a.scope/cpu.max": "max 100000\n", w + "/user.slice/a.scope/memory.max": "max\n",
			w + "/user.slice/a.scope/memory.high": "max\n", w + "/user.slice/a.scope/memory.current": "9\n",
		}, 0, 0, 0},
		{"version 2, nested", map[string]string{
			"proc/self/cgroup": "0::/a/b/c\n", "proc/self/mountinfo": mount2,
			w + "/a/b/c/cpu.max": "400000 100000\n", w + "/a/b/cpu.max": "max 100000\n", w + "/a/cpu.max": "250000 100000\n",
			w + "/a/b/c/memory.max": "209715200\n", w + "/a/b/c/memory.current": "10485760\n",
			w + "/a/b/memory.max": "max\n", w + "/a/b/memory.high": "157286400\n", w + "/a/b/memory.current": "104857600\n",
			w + "/a/b/memory.stat": "anon 5\ninactive_file 52428800\nactive_file 7\n",
		}, 2.5, 150, 100},
		{"version 2 in a container", map[string]string{
			"proc/self/cgroup": "0::/\n", "proc/self/mountinfo": mount2,
			w + "/cpu.max": "150000 100000\n", w + "/memory.max": "33554432\n", w + "/memory.current": "41943040\n",
		}, 1.5, 32, 0},
		{"a group outside of what is mounted", map[string]string{
			"proc/self/cgroup": "0::/../../other\n", "proc/self/mountinfo": mount2, w + "/cpu.max": "300000 100000\n",
		}, 3, 0, 0},
		{"both versions", map[string]string{
			"proc/self/cgroup":           "4:memory:/\n0::/m\n",
			"proc/self/mountinfo":        mount1 + "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
			v + "/memory.limit_in_bytes": "8388608\n", v + "/memory.usage_in_bytes": "0\n",
			w + "/unified/m/cpu.max": "50000 100000\n",
		}, 0.5, 8, 8},
		{"a mount point with a space, files that say nothing", map[string]string{
			"proc/self/cgroup":    "0::/m\nnonsense\n",
			"proc/self/mountinfo": "nonsense\n" + strings.ReplaceAll(mount2, "/sys/fs/cgroup", `/sys/a\040b`),
			"sys/a b/m/cpu.max":   "1 2 3\n", "sys/a b/cpu.max": "700000 100000\n", "sys/a b/m/memory.max": "x\n",
		}, 7, 0, 0},
	} {
		g := groups{machineFiles(tc.files)}
		for what, f := range map[string]struct {
			get  func() (float64, bool)
			unit float64
			want float64
		}{
			"processors":  {g.cpus, 1, tc.cpus},
			"memory":      {g.memory, 1 << 20, tc.limit},
			"free memory": {g.freeMemory, 1 << 20, tc.free},
		} {
			got, ok := f.get()
			if ok = ok && got > 0; ok != (f.want > 0) || ok && got != f.want*f.unit {
				t.Errorf("%s: %s: got %v, %v, want %v", tc.name, what, got/f.unit, ok, f.want)
			}
		}
	}
	full := groups{machineFiles(map[string]string{
		"proc/self/cgroup": "0::/\n", "proc/self/mountinfo": mount2, w + "/memory.max": "5\n", w + "/memory.current": "9\n",
	})}
	if left, ok := full.freeMemory(); left != 0 || !ok {
		t.Errorf("a group that is full has %v left, %v", left, ok)
	}
}

// TestMachineLine says what a process lacks of its machine, and nothing where it
// lacks nothing.
func TestMachineLine(t *testing.T) {
	run := cpu.Options{Level: kernel.Portable, Threads: 4}
	for want, g := range map[string]grants{
		"kernels portable, threads 4": {processors: 4, all: 4, total: 8 << 30},
		"threads 4":                   {processors: 4, cpus: 4, memory: 9 << 30, total: 8 << 30},
		"threads 4; this process is limited to 4 of 64 processors, the time of 1.5 processors, 2 GiB of 8 GiB of memory": {
			processors: 4, all: 64, cpus: 1.5, memory: 2 << 30, total: 8 << 30,
		},
		"threads 4, more than processors (2), which makes it slower; this process is limited to 2 of 4 processors": {
			processors: 2, all: 4,
		},
	} {
		if got := machineLine(run, g); !strings.HasPrefix(got, "machine: ") || !strings.HasSuffix(got, want) {
			t.Errorf("got %q, want …%q", got, want)
		}
	}
}

// TestCountList counts processors as Linux lists them.
func TestCountList(t *testing.T) {
	for list, want := range map[string]int{"0": 1, "0-3\n": 4, "0-3,8,10-11": 7, "": 0, "x": 0, "1-x": 0, "3-1": 0} {
		if got := countList(list); got != want {
			t.Errorf("%q: got %d, want %d", list, got, want)
		}
	}
}
