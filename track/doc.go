// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

// Package track is what happened in a run: it writes events.jsonl, and reads it
// for people and tools. A run never reads it back, so deleting this package, or
// the file, changes no number.
//
// Types to know: [Event] is one thing that happened, as one of [Start], [Step],
// [Eval], [Checkpoint], [Spike], [Source], [Restart], [Fault], [Warning] and
// [End]; [Sink] takes events; [Log] is the sink that is events.jsonl.
//
//	log, err := track.Open("runs/first/events.jsonl")
//	err = log.Write(time.Now(), track.Step{Step: 1, LossNats: 10.8})
//	err = log.Close()
//	torn, err := track.Read(file, func(r track.Record) error { … })
//
// Not here: what is done about an event (train), other sinks (later).
//
// # events.jsonl
//
// One JSON object a line, appended. The first two fields are event, the name of
// the type in lower case, and time, RFC 3339 in UTC with milliseconds; then the
// fields of the type in the order of its declaration. Names never change, fields
// are only added, and readers ignore those that they do not know. Fields that
// do not apply are absent where the type says so (omitempty).
//
// Numbers are the shortest decimal that reads back as the same float64. JSON
// has no NaN and no infinity: such a number is null, and the object has at its
// end a field nonfinite that maps the names of these fields to "NaN", "+Inf" or
// "-Inf". [Read] puts them back.
//
//	{"event":"step","time":"2026-01-02T03:04:05.678Z","step":7,"loss_nats":null,…,"nonfinite":{"loss_nats":"NaN"}}
//
// Each line is written with one call in append mode. A process that dies while
// writing leaves a torn line; the next one to open the file begins a new line,
// and Read passes over lines that are not a JSON object and says which. A run
// that was resumed from an older checkpoint has some steps twice: the later line
// is the one that counts.
package track
