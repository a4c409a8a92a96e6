// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"pleach/engine/cpu"
	"pleach/half"
	"pleach/internal/unit"
)

// quartiles of x, which is not empty; x is sorted.
func quartiles(x []float64) (low, median, high float64) {
	slices.Sort(x)
	at := func(q float64) float64 {
		f := q * float64(len(x)-1)
		i := int(f)
		j := min(i+1, len(x)-1)
		return x[i] + (f-float64(i))*(x[j]-x[i])
	}
	return at(0.25), at(0.5), at(0.75)
}

// samples is a quantity that was measured again and again.
type samples struct{ values []float64 }

func (s *samples) add(x float64) { s.values = append(s.values, x) }

func (s *samples) median() float64 {
	if len(s.values) == 0 {
		return 0
	}
	_, m, _ := quartiles(slices.Clone(s.values))
	return m
}

// spread is the distance of the quartiles, relative to the median.
func (s *samples) spread() float64 {
	if len(s.values) == 0 {
		return 0
	}
	low, m, high := quartiles(slices.Clone(s.values))
	return (high - low) / max(m, 1e-12)
}

// noise says how far the measurements of a report can be trusted.
type noise struct {
	Peak   float64 `json:"peak"`        // distance of the quartiles of the peak over its median
	Steps  float64 `json:"steps"`       // the same of what was measured
	Others float64 `json:"others_cpus"` // processors' time that other processes took from us
	// Bandwidth is the same of the read bandwidth where it was measured all along.
	Bandwidth float64 `json:"bandwidth,omitempty"`
	mine      int     // threads
}

// most is the noise beyond which a comparison means nothing.
const most = 0.1

// tooNoisy is the reason to believe nothing, empty if there is none.
func (n noise) tooNoisy() string {
	var why []string
	for _, s := range []struct {
		what string
		x    float64
	}{{"the peak", n.Peak}, {"the measurements", n.Steps}, {"the bandwidth", n.Bandwidth}} {
		if s.x > most {
			why = append(why, fmt.Sprintf("the quartiles of %s are %.0f %% apart, want at most %.0f %%",
				s.what, 100*s.x, 100*most))
		}
	}
	if n.Others > most*float64(n.mine) {
		why = append(why, fmt.Sprintf("other processes took %.1f of the %d processors that it needs", n.Others, n.mine))
	}
	return strings.Join(why, "; ")
}

// bestPeak is the peak in a type for whoever has no time to watch it move.
func bestPeak(e *cpu.Engine, t half.DType) float64 {
	best := 0.0
	for range 4 {
		best = max(best, e.Peak(t))
	}
	return best
}

// lastCache is the size of the largest cache of the first processor, 32 MiB if
// the system does not say.
func lastCache() int {
	largest := 0
	files, _ := filepath.Glob("/sys/devices/system/cpu/cpu0/cache/index*/size")
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			continue
		}
		digits, scale := strings.TrimSpace(string(text)), 1
		if s, ok := strings.CutSuffix(digits, "K"); ok {
			digits, scale = s, 1<<10
		} else if s, ok := strings.CutSuffix(digits, "M"); ok {
			digits, scale = s, 1<<20
		}
		if n, err := strconv.Atoi(digits); err == nil {
			largest = max(largest, n*scale)
		}
	}
	if largest == 0 {
		return 32 << 20
	}
	return largest
}

// watch compares what the processors of this process did with what it did itself.
type watch struct {
	began     time.Time
	all, mine float64 // seconds of processors
}

func beginWatch() watch { return watch{time.Now(), busySeconds(), processSeconds()} }

// others is the mean number of processors that other processes have taken from
// a run that needs so many: those beyond the idle ones.
func (w watch) others(threads int) float64 {
	all := busySeconds() - w.all
	wall := time.Since(w.began).Seconds()
	if w.all == 0 || wall < 0.2 { // unknown, or too short for a clock of 10 ms
		return 0
	}
	foreign := (all - (processSeconds() - w.mine)) / wall
	return math.Max(0, foreign-float64(max(0, runtime.NumCPU()-threads)))
}

// busySeconds is the time that the processors which this process may use have
// worked since the system began, for whomever; 0 where the system does not say.
func busySeconds() float64 {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	may, ticks := allowed(), 0
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) < 9 || !strings.HasPrefix(f[0], "cpu") || !may[strings.TrimPrefix(f[0], "cpu")] {
			continue
		}
		for i, field := range f[1:9] { // user nice system idle iowait irq softirq steal
			if n, err := strconv.Atoi(field); err == nil && i != 3 && i != 4 {
				ticks += n
			}
		}
	}
	return float64(ticks) / userHZ
}

// userHZ is the clock of /proc: Linux shows 100 ticks a second whatever it has.
const userHZ = 100

// allowed is the numbers of the processors that this process may use.
func allowed() map[string]bool {
	set := map[string]bool{}
	for part := range strings.SplitSeq(statusLine("Cpus_allowed_list"), ",") {
		from, to, _ := strings.Cut(part, "-")
		lo, err := strconv.Atoi(from)
		hi := lo
		if to != "" {
			hi, _ = strconv.Atoi(to)
		}
		for i := lo; err == nil && i <= hi; i++ {
			set[strconv.Itoa(i)] = true
		}
	}
	return set
}

// statusLine is what /proc/self/status says of a name, empty if nothing.
func statusLine(name string) string {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(rest)
		}
	}
	return ""
}

// processAge is how long ago this process was started, 0 if the system does not
// say. It is good to 10 ms.
func processAge() time.Duration {
	stat, err := os.ReadFile("/proc/self/stat")
	up, also := os.ReadFile("/proc/uptime")
	if err != nil || also != nil {
		return 0
	}
	// The second field is the name of the program in parentheses and may hold
	// spaces; the 22nd is the time of the start.
	_, rest, _ := strings.Cut(string(stat), ") ")
	f, u := strings.Fields(rest), strings.Fields(string(up))
	if len(f) < 20 || len(u) == 0 {
		return 0
	}
	began, err := strconv.ParseFloat(f[19], 64)
	now, also := strconv.ParseFloat(u[0], 64)
	if err != nil || also != nil {
		return 0
	}
	return max(0, time.Duration((now-began/userHZ)*float64(time.Second)))
}

// peakRSS is the most memory that this process has had at a time, 0 if the
// system does not say.
func peakRSS() int64 {
	if kib, err := strconv.ParseInt(strings.TrimSuffix(statusLine("VmHWM"), " kB"), 10, 64); err == nil {
		return kib << 10
	}
	return maxRSS()
}

// rounded prints bytes for people.
func rounded(n int64) string { return unit.Bytes(n).Rounded() }
