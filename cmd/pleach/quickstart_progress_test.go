// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pleach/track"
)

// TestQuickProgress follows a stage of three steps, the last of three stages.
func TestQuickProgress(t *testing.T) {
	events := []struct {
		at time.Duration
		track.Event
	}{
		{0, track.Step{Step: 1, LossNats: 7.25, TokensPerSecond: 100}},
		{1, track.Step{Step: 2, LossNats: 6.5, TokensPerSecond: 100}},
		{2, track.Step{Step: 30, LossNats: 6.5, TokensPerSecond: 100}},
		{11, track.Warning{Reason: "forgetting"}},
		{12, track.Step{Step: 60, LossNats: 6, TokensPerSecond: 100}},
		{13, track.Spike{}},
	}
	for live, want := range map[bool]string{
		false: "replay     step 1/60  loss 7.250  100 tokens/s  0:59 left, 1:09 in all\n" +
			"replay: forgetting\n" +
			"replay     step 60/60  loss 6.000  100 tokens/s  0:00 left, 0:10 in all\n",
		true: "replay     step 1/60  loss 7.250  100 tokens/s  0:59 left, 1:09 in all" +
			"\r\x1b[Kreplay     step 2/60  loss 6.500  100 tokens/s  0:58 left, 1:08 in all" +
			"\r\x1b[Kreplay     step 30/60  loss 6.500  100 tokens/s  0:30 left, 0:40 in all" +
			"\r\x1b[Kreplay: forgetting\n" +
			"replay     step 60/60  loss 6.000  100 tokens/s  0:00 left, 0:10 in all",
	} {
		var b bytes.Buffer
		p := newQuickProgress(&b)
		if live {
			p.width = func() int { return 80 }
		}
		p.stage([]stage{{name: "replay", steps: 60}, {steps: 10}}, 100)
		began := time.Now()
		for _, e := range events {
			if err := p.Write(began.Add(e.at*time.Second), e.Event); err != nil {
				t.Fatal(err)
			}
		}
		if d := cmp.Diff(want, b.String()); d != "" {
			t.Errorf("live %v (-want +got):\n%s", live, d)
		}
	}
}
