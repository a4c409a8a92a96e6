// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package track

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"pleach/internal/fault"
)

// Log is an events.jsonl that is being written. It may be used by several
// goroutines.
type Log struct {
	mu   sync.Mutex
	f    *os.File
	torn bool // the last byte of the file is not the end of a line
}

var _ Sink = (*Log)(nil)

// Open opens an events.jsonl for appending, and makes it if it is not there. A
// torn last line stays as it is: the next event begins a new line.
func Open(path string) (*Log, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o666)
	if err != nil {
		return nil, fault.Machinef("track: opening: %w", err)
	}
	l := &Log{f: f}
	if l.torn, err = isTorn(f); err != nil {
		return nil, fault.Machinef("track: opening: %w", errors.Join(err, f.Close()))
	}
	return l, nil
}

func isTorn(f *os.File) (bool, error) {
	fi, err := f.Stat()
	if err != nil || fi.Size() == 0 {
		return false, err
	}
	var b [1]byte
	if _, err := f.ReadAt(b[:], fi.Size()-1); err != nil && err != io.EOF {
		return false, err
	}
	return b[0] != '\n', nil
}

// Write appends an event. Rare events that explain a run (a checkpoint, a fault,
// an end) are flushed to the disk; steps are not, since waiting for a disk at
// every step would slow the run, and only a power cut can lose them.
func (l *Log) Write(at time.Time, e Event) error {
	b, err := Encode(nil, at, e)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.torn {
		b = append([]byte{'\n'}, b...)
	}
	n, err := l.f.Write(b)
	if n > 0 {
		l.torn = n < len(b)
	}
	if err != nil {
		return fault.Machinef("track: %w", err)
	}
	switch e.(type) {
	case Checkpoint, Fault, Restart, End:
		if err := l.f.Sync(); err != nil {
			return fault.Machinef("track: flushing: %w", err)
		}
	}
	return nil
}

// Close flushes and closes the file.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := errors.Join(l.f.Sync(), l.f.Close()); err != nil {
		return fault.Machinef("track: closing: %w", err)
	}
	return nil
}

// Sinks is several sinks as one. Each gets every event, even if another fails.
type Sinks []Sink

// Write gives an event to all.
func (s Sinks) Write(at time.Time, e Event) error {
	var errs []error
	for _, x := range s {
		errs = append(errs, x.Write(at, e))
	}
	return errors.Join(errs...)
}

// Close closes all.
func (s Sinks) Close() error {
	var errs []error
	for _, x := range s {
		errs = append(errs, x.Close())
	}
	return errors.Join(errs...)
}

func invalid(e Event, err error) error {
	return fmt.Errorf("track: event %q: %w", e.Kind(), err)
}
