// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package data

import (
	"cmp"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strconv"

	"pleach/blob"
	"pleach/data/frame"
	"pleach/data/table"
	"pleach/internal/fault"
)

// A folder of tokens holds the documents of one source as ids, in the order of its
// files, with what is left out and why. The documents stand where they stood in the
// files, so a run that reads the folder has the rows of one that reads the texts.
//
//	tokens.json        what was read, by which tokenizer, and the parts; written last
//	00000.arrow …      parts of 256 MiB of the source: Arrow IPC files, a batch for
//	                   each MiB in which documents stand
const (
	tokensName = "tokens.json"
	tokenChunk = 1 << 20
	partChunks = 256
	tokensForm = 1 // changes with what the files mean
)

// tokenManifest is tokens.json.
type tokenManifest struct {
	Form      int               `json:"form"`
	Complete  bool              `json:"complete"`
	Tokenizer string            `json:"tokenizer"`
	Options   tokenOptions      `json:"options"`
	Files     []tokenFile       `json:"files"`
	Parts     []tokenPart       `json:"parts"`
	Skipped   map[string]int64  `json:"skipped"` // files left out, by reason
	Examples  map[string]string `json:"examples"`
}

// tokenOptions are what of a source the documents depend on.
type tokenOptions struct {
	Field      string `json:"field"`
	ID         string `json:"id"`
	Mask       string `json:"mask"`
	Format     string `json:"format"`
	Damaged    int64  `json:"damaged"`
	Vocabulary int    `json:"vocabulary"`
}

// tokenFile is a file that was read.
type tokenFile struct {
	Name   string `json:"name"`
	Rel    string `json:"rel"`
	Bytes  int64  `json:"bytes"`
	Format string `json:"format"`
	Packed uint8  `json:"packed"`
	Print  string `json:"print"`
}

// tokenPart is an Arrow file.
type tokenPart struct {
	Rows      int64            `json:"rows"`
	Documents int64            `json:"documents"`
	Tokens    int64            `json:"tokens"`            // without special ids
	Skipped   map[string]int64 `json:"skipped,omitempty"` // documents left out, by reason
}

// Columns of a part.
const (
	colAt    = iota // the stored byte of the source at which the document stands
	colBytes        // that it takes
	colName
	colWhy  // it is left out, or "encoded", or "ids" if it came as ids
	colIDs  // without special ids
	colMask // absent: all 1
)

// What a document is, as tokenFields reads it.
const (
	whatName = iota
	whatWhy
	whatIDs
	whatMask
)

const (
	asText = "encoded"
	asIDs  = "ids"
)

func tokenColumns() []table.ColumnDef {
	return []table.ColumnDef{
		{Name: "at", Kind: table.Int64},
		{Name: "bytes", Kind: table.Int64},
		{Name: "name", Kind: table.String},
		{Name: "why", Kind: table.String},
		{Name: "ids", Kind: table.Numbers},
		{Name: "mask", Kind: table.Bits},
	}
}

// tokenFields are the columns as they are read: where documents stand, and what
// they are.
func tokenFields() (where, what []table.Field) {
	all := []table.Field{
		{Path: "at", Form: table.Label},
		{Path: "bytes", Form: table.Label},
		{Path: "name", Form: table.Text},
		{Path: "why", Form: table.Text},
		{Path: "ids", Form: table.IDs},
		{Path: "mask", Form: table.IDs},
	}
	return all[:2], all[2:]
}

func partName(i int) string {
	s := strconv.Itoa(i)
	return "00000"[min(len(s), 5):] + s + ".arrow"
}

// readTokens reads tokens.json of a folder; nil if it has none.
func readTokens(dir string) (*tokenManifest, error) {
	f := &tokenManifest{}
	name, err := readManifest(dir, tokensName, f)
	if name == "" || err != nil {
		return nil, err
	}
	if f.Form != tokensForm {
		return nil, fault.Dataf("data: %s: got form %d, want %d: it was made by another version", name, f.Form, tokensForm)
	}
	return f, nil
}

// readManifest reads the description of a folder of tokens or rows; its name is ""
// if there is none.
func readManifest(dir, file string, to any) (name string, err error) {
	name = filepath.Join(dir, file)
	if _, err := os.Stat(name); err != nil {
		return "", nil
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return name, fault.Dataf("data: %w", err)
	}
	if err := json.Unmarshal(b, to); err != nil {
		return name, fault.Dataf("data: %s: %w", name, err)
	}
	return name, nil
}

// writeManifest writes what readManifest reads.
func writeManifest(store *blob.Dir, file string, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return store.Write(file, func(f io.Writer) error {
		_, err := f.Write(append(b, '\n'))
		return err
	})
}

// openTokens makes s a source of tokens if its path is a folder of them.
func (s *source) openTokens() (bool, error) {
	if len(s.Paths) != 1 {
		return false, nil
	}
	dir := s.Paths[0]
	f, err := readTokens(dir)
	if f == nil || err != nil {
		return false, err
	}
	if !f.Complete {
		return false, fault.Dataf("data: %s: its tokens are not complete: want `pleach data tokenize` to end", dir)
	}
	if err := f.Options.agree(&s.Source, dir); err != nil {
		return false, err
	}
	s.Field, s.ID, s.Mask, s.Format = f.Options.Field, f.Options.ID, f.Options.Mask, f.Options.Format
	s.Damaged = f.Options.Damaged
	for _, one := range f.Files {
		print, err := hex.DecodeString(one.Print)
		if err != nil || one.Bytes <= 0 {
			return false, fault.Dataf("data: %s: file %s: it is damaged", filepath.Join(dir, tokensName), one.Name)
		}
		s.files = append(s.files, file{
			found: found{name: one.Name, rel: one.Rel}, size: one.Bytes, base: s.size, format: one.Format,
			packed: frame.Format(one.Packed), print: print, lines: &lineIndex{}, shape: &shape{},
		})
		s.size += one.Bytes
	}
	want := int((s.size + tokenChunk*partChunks - 1) / (tokenChunk * partChunks))
	if len(f.Parts) != want {
		return false, fault.Dataf("data: %s: got %d parts, want %d", filepath.Join(dir, tokensName), len(f.Parts), want)
	}
	s.parts = &parts{dir: dir, tokenizer: f.Tokenizer, parts: f.Parts}
	s.skipped, s.examples = map[string]int64{}, map[string]string{}
	maps.Copy(s.skipped, f.Skipped)
	maps.Copy(s.examples, f.Examples)
	return true, nil
}

// agree refuses a source of tokens that says something else than they are made with.
func (o *tokenOptions) agree(src *Source, dir string) error {
	for _, opt := range []struct{ name, got, want string }{
		{"field", src.Field, o.Field}, {"id", src.ID, o.ID}, {"mask", src.Mask, o.Mask}, {"format", src.Format, o.Format},
	} {
		if opt.got != "" && opt.got != opt.want {
			return fault.Configf("data: %s: its tokens are made with %s %q: got %q, want the same or none",
				dir, opt.name, opt.want, opt.got)
		}
	}
	if src.Rows {
		return fault.Configf("data: %s: it holds documents as ids, and no ready rows: want no rows: true", dir)
	}
	if src.Damaged > 0 && src.Damaged != o.Damaged {
		return fault.Configf("data: %s: its tokens are made with %d damaged documents allowed: got %d, want the same or none",
			dir, o.Damaged, src.Damaged)
	}
	return nil
}

// checkTokenizer refuses tokens and rows of another tokenizer than the model's.
func (s *source) checkTokenizer(tokenizer string) error {
	switch {
	case s.parts != nil && s.parts.tokenizer != tokenizer:
		return fault.Configf("data: %s: its tokens are of another tokenizer than the model's: got %s, want %s",
			s.parts.dir, s.parts.tokenizer, cmp.Or(tokenizer, "one"))
	case s.packed != nil && tokenizer != "" && s.packed.Fingerprint.Tokenizer != tokenizer:
		return fault.Configf("data: %s: its rows are of another tokenizer than the model's: got %s, want %s",
			s.packed.dir, cmp.Or(s.packed.Fingerprint.Tokenizer, "none"), tokenizer)
	}
	return nil
}

// parts is the tokens of a source. Its tables are on the shelf of the source, by
// the number of the part.
type parts struct {
	dir       string
	tokenizer string
	parts     []tokenPart
}

// tokens is how many ids the documents have in a run, with the special ones. Those
// that came as ids are taken to have none of their own.
func (p *parts) tokens(spec *Spec) (n int64) {
	special := int64(1)
	if spec.AddBOS {
		special++
	}
	for _, part := range p.parts {
		n += part.Tokens + special*part.Documents
	}
	return n
}

// prepare opens a part.
func (p *parts) prepare(t *shelved) error { return t.openPart(p.dir, p.parts[t.file].Rows) }

// openPart opens a part of a folder, which has so many rows.
func (t *shelved) openPart(dir string, rows int64) (err error) {
	name := filepath.Join(dir, partName(int(t.file)))
	if t.from, err = (local{}).open(name); err != nil {
		return err
	}
	if t.table, err = table.Open(t.from, t.from.Size(), name); err == nil && t.table.Rows() != rows {
		err = fault.Dataf("data: %s: got %d rows, want %d", name, t.table.Rows(), rows)
	}
	if err != nil {
		t.close()
	}
	return err
}

// batches is the rows of the batches of a part that hold what stands in chunks
// from … to−1 of it.
func (t *shelved) batches(from, to int64) (lo, hi int64) {
	groups := t.table.Groups()
	at := func(i int64) int64 {
		if i >= int64(len(groups)) {
			return t.table.Rows()
		}
		return groups[i]
	}
	return at(from), at(to)
}

// findTokens lists the documents that stand in [lo,hi) of the source.
func (s *source) findTokens(lo, hi int64) ([]ref, error) {
	var refs []ref
	var b table.Batch
	for lo < hi {
		part := lo / (tokenChunk * partChunks)
		base := part * tokenChunk * partChunks
		end := min(hi, base+tokenChunk*partChunks)
		var err error
		if refs, err = s.findPart(refs, int32(part), base, lo, end, &b); err != nil {
			return nil, err
		}
		lo = end
	}
	return refs, nil
}

func (s *source) findPart(refs []ref, part int32, base, lo, hi int64, b *table.Batch) ([]ref, error) {
	t, err := s.tables.take(s, part)
	if err != nil {
		return nil, err
	}
	defer s.tables.give(t)
	first, last := t.batches((lo-base)/tokenChunk, (hi-base+tokenChunk-1)/tokenChunk)
	where, _ := tokenFields()
	if err := t.table.Read(first, last, where, b); err != nil {
		return nil, err
	}
	for i := range b.Rows {
		at, err := strconv.ParseInt(string(b.Columns[colAt].Text(i)), 10, 64)
		n, err2 := strconv.ParseInt(string(b.Columns[colBytes].Text(i)), 10, 64)
		if err = errors.Join(err, err2); err != nil {
			return nil, s.badToken(ref{file: part, off: first + int64(i)}, "%w", err)
		}
		if lo <= at && at < hi {
			refs = append(refs, ref{file: part, off: first + int64(i), n: n})
		}
	}
	return refs, nil
}

// token reads a document of a source of tokens.
func (s *source) token(r ref, c *scratch) (Document, reason, error) {
	w, err := s.hold(r.file, r.off, c, func(w *rows, t *shelved) error {
		lo, hi := t.around(r.off)
		_, what := tokenFields()
		return w.read(t, lo, hi, what)
	})
	if err != nil {
		return Document{}, none, err
	}
	k := int(r.off - w.lo)
	columns := w.batch.Columns
	name, _ := single(&columns[whatName], k)
	why, _ := single(&columns[whatWhy], k)
	d := Document{ID: string(name), encoded: string(why) == asText}
	if !d.encoded && string(why) != asIDs {
		for q := range reasons {
			if q.String() == string(why) {
				return d, q, nil
			}
		}
		return d, none, s.badToken(r, "got %q", why)
	}
	lo, hi := columns[whatIDs].Row(k)
	if d.IDs = columns[whatIDs].IDs[lo:hi:hi]; d.IDs == nil {
		d.IDs = []int32{}
	}
	mask := &columns[whatMask]
	if lo, hi := mask.Row(k); hi > lo && mask.Nulls[lo] == table.Present {
		c.mask = c.mask[:0]
		for _, m := range mask.IDs[lo:hi] {
			c.mask = append(c.mask, uint8(m))
		}
		d.Mask = c.mask
	}
	if !d.encoded && len(d.IDs) == 0 || d.Mask != nil && len(d.Mask) != len(d.IDs) {
		return d, none, s.badToken(r, "got %d ids with a mask of %d entries", len(d.IDs), len(d.Mask))
	}
	return d, none, nil
}

// badToken is an error about a row of a part: rows are counted from 1.
func (s *source) badToken(r ref, format string, args ...any) error {
	name := filepath.Join(s.parts.dir, partName(int(r.file)))
	return fault.Dataf("data: %s:%d: "+format, append([]any{name, r.off + 1}, args...)...)
}

// around is the rows of the batch that holds a row.
func (t *shelved) around(row int64) (lo, hi int64) {
	groups := t.table.Groups()
	i := 0
	for i+1 < len(groups) && groups[i+1] <= row {
		i++
	}
	return t.batches(int64(i), int64(i)+1)
}
