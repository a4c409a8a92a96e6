// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"pleach/internal/fault"
	"pleach/internal/strictjson"
)

// CardInfo is what the card of a merged model says.
type CardInfo struct {
	Title     string // of the model
	Method    string
	Reference string // where the method comes from: arXiv:…, an address, or words
	Models    []CardModel
	Base      int    // index in Models, −1 for none or one without a part of its own
	Config    []byte // as the user wrote it

	Version string // of pleach
	Mode    string // of arithmetic
	Seed    uint64
}

// CardModel is an input on a card.
type CardModel struct {
	Model   CardInput
	Adapter CardInput // without a path: none
}

// CardInput is a model or an adapter on a card.
type CardInput struct {
	Path, Revision string
	Sum, Of        string // of [Fingerprint], or empty
}

// Card is the README.md of a merged model: front matter that the Hugging Face hub
// understands, the method, the models, the configuration, and where it all comes
// from. It depends on i and on which paths exist here, on nothing else.
func Card(i CardInfo) []byte {
	var b bytes.Buffer
	i.frontMatter(&b)
	fmt.Fprintf(&b, "# %s\n\nThis model was merged from other language models by pleach, which reads the\n"+
		"configurations of mergekit.\n\n## Merge details\n\n### Merge method\n\n%s", line(i.Title), i.method())
	b.WriteString("\n### Models merged\n\n")
	for n, m := range i.Models {
		if n != i.Base {
			fmt.Fprintf(&b, "- %s\n", m.markdown())
		}
	}
	text := string(i.Config)
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	fence := fenceFor(text)
	fmt.Fprintf(&b, "\n### Configuration\n\n%syaml\n%s%s\n", fence, text, fence)
	i.provenance(&b)
	return b.Bytes()
}

// frontMatter writes the YAML that the hub reads.
func (i CardInfo) frontMatter(b *bytes.Buffer) {
	var names []string
	seen := map[string]bool{}
	for _, m := range i.Models {
		for _, in := range []CardInput{m.Model, m.Adapter} {
			if isHubName(in.Path) && !seen[in.Path] {
				seen[in.Path] = true
				names = append(names, in.Path)
			}
		}
	}
	b.WriteString("---\nbase_model:")
	if len(names) == 0 {
		b.WriteString(" []")
	}
	b.WriteString("\n")
	for _, n := range names {
		if !strings.Contains(n, "/") || !plainName.MatchString(n) {
			n = strictjson.Quote(n) // a JSON string is a YAML string; 1.5 would be a number
		}
		fmt.Fprintf(b, "- %s\n", n)
	}
	b.WriteString("library_name: transformers\ntags:\n- mergekit\n- merge\n---\n")
}

// method is the paragraph on the method.
func (i CardInfo) method() string {
	name := code(i.Method)
	switch link, ok := referenceLink(i.Reference); {
	case ok:
		name = fmt.Sprintf("[%s](%s)", name, link)
	case i.Reference != "":
		name += fmt.Sprintf(" (%s)", line(i.Reference))
	}
	base := ""
	if i.Base >= 0 && i.Base < len(i.Models) {
		base = ", with " + i.Models[i.Base].markdown() + " as the base"
	}
	return fmt.Sprintf("The merge method is %s%s.\n", name, base)
}

// provenance writes what made the model, and of what.
func (i CardInfo) provenance(b *bytes.Buffer) {
	fmt.Fprintf(b, "\n### Provenance\n\n| | |\n|---|---|\n| pleach | %s |\n| arithmetic | %s |\n| seed | %d |\n",
		cell(i.Version), cell(i.Mode), i.Seed)
	for _, m := range i.Models {
		for _, in := range []CardInput{m.Model, m.Adapter} {
			if in.Sum != "" {
				fmt.Fprintf(b, "| SHA-256 of %s of %s | %s |\n", cell(in.Of), cell(code(in.Path)), cell(code(in.Sum)))
			}
		}
	}
}

// markdown names a model, with links to what looks like a name on the hub.
func (m CardModel) markdown() string {
	s := m.Model.markdown()
	if m.Adapter.Path != "" {
		s += " + " + m.Adapter.markdown()
	}
	return s
}

func (in CardInput) markdown() string {
	s := code(in.Path)
	if isHubName(in.Path) && plainName.MatchString(in.Path) {
		s = fmt.Sprintf("[%s](https://huggingface.co/%s)", in.Path, in.Path)
	}
	if in.Revision != "" {
		s += " at " + code(in.Revision)
	}
	return s
}

// plainName is a name on the hub as it can stand in a link.
var plainName = regexp.MustCompile(`^([A-Za-z0-9][A-Za-z0-9_.-]*/)?[A-Za-z0-9][A-Za-z0-9_.-]*$`)

// isHubName says whether a path looks like a name on the Hugging Face hub: it does
// not begin with / or ~, has one / at most, and nothing is there under it.
func isHubName(path string) bool {
	if path == "" || path[0] == '/' || path[0] == '~' || strings.Count(path, "/") > 1 {
		return false
	}
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// referenceLink is the address of a reference, if it has one.
func referenceLink(ref string) (string, bool) {
	if id, ok := strings.CutPrefix(ref, "arXiv:"); ok && arxivID.MatchString(id) {
		return "https://arxiv.org/abs/" + id, true
	}
	return ref, address.MatchString(ref)
}

var (
	arxivID = regexp.MustCompile(`^[0-9]{4}\.[0-9]{4,5}$`)
	address = regexp.MustCompile(`^https?://[A-Za-z0-9/._~%?#=&-]+$`)
)

// code is a text in a code span, whatever is in it.
func code(s string) string {
	s = line(s)
	tick := strings.Repeat("`", longest(s, '`')+1)
	pad := ""
	if strings.HasPrefix(s, "`") || strings.HasSuffix(s, "`") || s == "" {
		pad = " "
	}
	return tick + pad + s + pad + tick
}

// line is a text on one line.
func line(s string) string { return strings.Join(strings.Fields(s), " ") }

// cell is a text that can stand in a cell of a table.
func cell(s string) string { return strings.ReplaceAll(line(s), "|", `\|`) }

// fenceFor is a fence that does not occur in a text.
func fenceFor(text string) string { return strings.Repeat("`", max(3, longest(text, '`')+1)) }

// longest is the length of the longest run of a byte.
func longest(s string, c byte) (most int) {
	n := 0
	for i := range len(s) {
		if n++; s[i] != c {
			n = 0
		}
		most = max(most, n)
	}
	return most
}

// Fingerprint is a SHA-256 that tells the weights in a folder from others without
// reading them, in hexadecimal, and what it is of. Of weights in shards it is of
// their index, of a safetensors file its header, of a zip archive the names, sizes
// and CRC-32 of its parts.
func Fingerprint(dir string) (sum, of string, err error) {
	for _, k := range []struct {
		name, of string
		hash     func(io.Writer, string) error
	}{
		{"model.safetensors.index.json", "", hashFile},
		{"model.safetensors", "the header of ", hashHeader},
		{"pytorch_model.bin.index.json", "", hashFile},
		{"pytorch_model.bin", "the parts of ", hashParts},
		{"adapter_model.safetensors", "the header of ", hashHeader},
		{"adapter_model.bin", "the parts of ", hashParts},
	} {
		file := filepath.Join(dir, k.name)
		if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		h := sha256.New()
		if err := k.hash(h, file); err != nil {
			return "", "", fmt.Errorf("merge: fingerprint of %s: %w", file, err)
		}
		return hex.EncodeToString(h.Sum(nil)), k.of + k.name, nil
	}
	return "", "", fault.Dataf("merge: fingerprint of %s: got no weights there", dir)
}

func hashFile(w io.Writer, name string) error {
	f, err := os.Open(name)
	if err != nil {
		return fault.Machinef("%w", err)
	}
	defer f.Close()
	if _, err := io.Copy(w, f); err != nil {
		return fault.Machinef("%w", err)
	}
	return nil
}

// hashHeader reads the eight bytes that say how long the header of a safetensors
// file is, and the header.
func hashHeader(w io.Writer, name string) error {
	f, err := os.Open(name)
	if err != nil {
		return fault.Machinef("%w", err)
	}
	defer f.Close()
	var n [8]byte
	if _, err := io.ReadFull(f, n[:]); err != nil {
		return fault.Dataf("length of the header: %w", err)
	}
	_, _ = w.Write(n[:]) // a hash does not fail
	size := binary.LittleEndian.Uint64(n[:])
	if size > 1<<30 {
		return fault.Dataf("length of the header: got %d", size)
	}
	if got, err := io.CopyN(w, f, int64(size)); err != nil {
		return fault.Dataf("header: got %d bytes, want %d: %w", got, size, err)
	}
	return nil
}

// hashParts reads the directory of a zip archive.
func hashParts(w io.Writer, name string) error {
	z, err := zip.OpenReader(name)
	if err != nil {
		return fault.Dataf("%w", err)
	}
	defer z.Close()
	for _, f := range z.File {
		fmt.Fprintf(w, "%q %d %08x\n", f.Name, f.UncompressedSize64, f.CRC32)
	}
	return nil
}
