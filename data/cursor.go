// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package data

import (
	"math"
	"strconv"

	"pleach/internal/fault"
)

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// A Cursor is where a lane is in a source, and what it has taken from there.
type Cursor struct {
	Epoch     int64 `json:"epoch"`
	Block     int   `json:"block"`     // index into the lane's blocks of the epoch
	Document  int   `json:"document"`  // index into the block's documents, in the epoch's order
	Tokens    int64 `json:"tokens"`    // ids taken, with the special ones
	Documents int64 `json:"documents"` // taken
	// Since is Tokens when the stage began that the lane is in: a mixture is
	// kept from there on, not made up for what came before.
	Since int64 `json:"since,omitempty"`
	// Skipped counts the documents left out in epoch 0, in the order empty, not
	// UTF-8, too long, damaged.
	Skipped [reasons]int64 `json:"skipped"`
}

// A reader walks over the documents of a source that fall to one lane.
type reader struct {
	*source
	seed     uint64
	lane     int
	shuffled bool
	at       Cursor

	blocks []int // of the lane in epoch at.Epoch; nil: not dealt yet
	refs   []ref // of block at.Block; nil: not listed yet
	listed bool
	note   func(name string, why reason)
}

// patience is how many epochs a lane of L rolls without meeting a document.
// In each epoch the lane gets a given document with probability 1/L, so this
// gives up by accident once in e⁶⁴ tries.
func patience(lanes int) int { return 64 * lanes }

// next is the next document, or false if the source is exhausted for this lane.
func (r *reader) next(c *scratch) (Document, bool, error) {
	for barren := 0; ; {
		if r.blocks == nil {
			if r.blocks = r.quota(); r.blocks == nil {
				return Document{}, false, nil
			}
		}
		if r.at.Block >= len(r.blocks) {
			if barren++; barren > patience(r.lanes) {
				return Document{}, false, fault.Dataf("data: source %s: lane %d found no document in "+
					"%d epochs: too few documents for %d lanes", r.Name, r.lane, barren, r.lanes)
			}
			r.at.Epoch++
			r.at.Block, r.at.Document, r.blocks, r.listed = 0, 0, nil, false
			continue
		}
		if !r.listed {
			var err error
			before := c.clock.enter(Reading)
			r.refs, err = r.documents(r.seed, r.at.Epoch, r.blocks[r.at.Block], r.shuffled)
			if c.clock.enter(before); err != nil {
				return Document{}, false, err
			}
			r.listed = true
		}
		if r.at.Document >= len(r.refs) {
			r.at.Block++
			r.at.Document, r.listed = 0, false
			continue
		}
		at := r.refs[r.at.Document]
		r.at.Document++
		d, why, err := r.read(at, c)
		if err != nil || why == none {
			return d, err == nil, err
		}
		if r.at.Epoch == 0 {
			r.at.Skipped[why]++
			r.note(d.ID, why)
		}
	}
}

// taken is the ids taken since the stage began.
func (r *reader) taken() int64 { return r.at.Tokens - r.at.Since }

// spent reports whether the lane has found that it has read the source as often
// as it may.
func (r *reader) spent() bool { return r.Epochs > 0 && float64(r.at.Epoch) >= r.Epochs }

// quota is the blocks the lane may read in its epoch; nil when it has read as
// many epochs as it may. Of a broken last epoch it reads that part of its
// blocks, rounded down.
func (r *reader) quota() []int {
	left := math.Inf(1)
	if r.Epochs > 0 {
		left = r.Epochs - float64(r.at.Epoch)
	}
	if left <= 0 {
		return nil
	}
	blocks := r.deal(r.seed, r.at.Epoch, r.lane)
	if left < 1 {
		blocks = blocks[:int(left*float64(len(blocks)))]
	}
	if blocks == nil {
		blocks = []int{} // fewer blocks than lanes: none in this epoch
	}
	return blocks
}
