// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package train

import "time"

// Ledger classifies the seconds of a run: each belongs to exactly one state.
type Ledger struct {
	now     func() time.Time
	since   time.Time
	state   string
	seconds map[string]float64
}

// The states of a ledger.
const (
	Starting      = "start"
	Computing     = "compute"
	WaitingData   = "data_wait"
	Checkpointing = "checkpoint"
	Evaluating    = "evaluate"
)

// NewLedger starts counting.
func NewLedger() *Ledger {
	return &Ledger{now: time.Now, since: time.Now(), state: Starting, seconds: map[string]float64{}}
}

// Enter ends the present state and begins another; it returns the seconds that
// the ended one took.
func (l *Ledger) Enter(state string) float64 {
	t := l.now()
	took := t.Sub(l.since).Seconds()
	l.seconds[l.state] += took
	l.since, l.state = t, state
	return took
}

// Seconds is the time in each state so far.
func (l *Ledger) Seconds() map[string]float64 {
	l.Enter(l.state)
	all := map[string]float64{}
	for k, v := range l.seconds {
		all[k] = v
	}
	return all
}
