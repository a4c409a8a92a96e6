// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package token

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"unicode/utf8"
)

// charsmap is the normalization table of a SentencePiece model: texts and what
// to write for them. As stored, little endian:
//
//	uint32   bytes of the trie, a multiple of 1024
//	uint32…  the trie, a double array as Darts-clone builds it
//	…        the replacements, each with a zero byte behind it
//
// A value of the trie is the offset of a replacement. Facts are from the
// released code of SentencePiece (normalizer.cc) and of Darts-clone (darts.h).
type charsmap struct {
	units []uint32
	texts []byte
}

// A unit of the trie. One that is a value has its highest bit set, so its label
// is no byte.
func unitLabel(u uint32) uint32  { return u & (1<<31 | 0xff) }
func unitValue(u uint32) int     { return int(u & (1<<31 - 1)) }
func unitHasLeaf(u uint32) bool  { return u>>8&1 == 1 }
func unitOffset(u uint32) uint32 { return u >> 10 << (u & (1 << 9) >> 6) }

// parseCharsmap reads a table, which is shared, and checks that looking things
// up stays inside it.
func parseCharsmap(b []byte) (*charsmap, error) {
	if len(b) < 4 {
		return nil, fmt.Errorf("character map: got %d bytes, want at least 4", len(b))
	}
	size := uint64(binary.LittleEndian.Uint32(b))
	b = b[4:]
	if size == 0 || size%1024 != 0 || size >= uint64(len(b)) {
		return nil, fmt.Errorf("character map: a trie of %d bytes in %d: want a multiple of 1024, and texts behind it", size, len(b))
	}
	c := &charsmap{units: make([]uint32, size/4), texts: b[size:]}
	for i := range c.units {
		c.units[i] = binary.LittleEndian.Uint32(b[4*i:])
	}
	if c.texts[len(c.texts)-1] != 0 {
		return nil, fmt.Errorf("character map: the last text has no end")
	}
	if !c.sound() {
		return nil, fmt.Errorf("character map: the trie points outside itself, or at a text of %d bytes or more", maxText)
	}
	return c, nil
}

// maxText bounds a replacement, and so what a small table can make of a text:
// it has less bytes. The longest one in use has 33.
const maxText = 1024

// sound reports whether every step from every unit stays inside, and every text
// is of bounded length.
func (c *charsmap) sound() bool {
	inside := func(i int, u uint32) bool {
		return uint64(uint32(i)^unitOffset(u)|0xff) < uint64(len(c.units))
	}
	if root := c.units[0]; unitLabel(root) != 0 || unitHasLeaf(root) || unitOffset(root) == 0 || !inside(0, root) {
		return false
	}
	for i, u := range c.units[1:] {
		i++
		switch {
		case unitLabel(u) > 0xff:
			if at := unitValue(u); at >= len(c.texts) || bytes.IndexByte(c.texts[at:min(len(c.texts), at+maxText)], 0) < 0 {
				return false
			}
		case !inside(i, u):
			return false
		case unitHasLeaf(u) && unitLabel(c.units[uint32(i)^unitOffset(u)]) <= 0xff:
			return false
		}
	}
	return true
}

// maxRules is how many rules for the starts of one text SentencePiece looks at.
const maxRules = 32

// longest is the replacement for the longest start of s that has one, and the
// length of that start, 0 if none has.
func (c *charsmap) longest(s []byte) (text []byte, n int) {
	value, rules := 0, 0
	at := unitOffset(c.units[0])
	for i, b := range s {
		at ^= uint32(b)
		u := c.units[at]
		if unitLabel(u) != uint32(b) {
			break
		}
		at ^= unitOffset(u)
		if unitHasLeaf(u) {
			value, n = unitValue(c.units[at]), i+1
			if rules++; rules == maxRules {
				break
			}
		}
	}
	if n == 0 {
		return nil, 0
	}
	return c.text(value), n
}

// shortest is the replacement for the shortest start of s that has one.
func (c *charsmap) shortest(s []byte) (text []byte, ok bool) {
	at := unitOffset(c.units[0])
	for _, b := range s {
		if b == 0 {
			break
		}
		at ^= uint32(b)
		u := c.units[at]
		if unitLabel(u) != uint32(b) {
			break
		}
		at ^= unitOffset(u)
		if unitHasLeaf(u) {
			return c.text(unitValue(c.units[at])), true
		}
	}
	return nil, false
}

func (c *charsmap) text(at int) []byte {
	t := c.texts[at:]
	return t[:bytes.IndexByte(t, 0)]
}

// plainASCII is the ASCII characters that stay as they are if no character
// outside ASCII follows. A nil map changes none.
func (c *charsmap) plainASCII() (plain [utf8.RuneSelf]bool) {
	for b := range plain {
		plain[b] = true
		if c == nil {
			continue
		}
		at := unitOffset(c.units[0]) ^ uint32(b)
		u := c.units[at]
		if unitLabel(u) != uint32(b) {
			continue
		}
		plain[b] = plain[b] && !unitHasLeaf(u)
		at ^= unitOffset(u)
		for next := range uint32(utf8.RuneSelf) {
			plain[b] = plain[b] && unitLabel(c.units[at^next]) != next
		}
	}
	return plain
}

// precompiled is a charsmap as Hugging Face tokenizers applies it: a grapheme
// cluster of under six bytes is replaced as a whole, by what stands for the
// shortest start of it that has a rule; else its characters are replaced one by
// one.
//
// The rules of Unicode Standard Annex 29 for clusters are in grapheme.go.
type precompiled struct {
	m     *charsmap
	plain [utf8.RuneSelf]bool
}

func newPrecompiled(m *charsmap) precompiled {
	p := precompiled{m: m, plain: m.plainASCII()}
	p.plain['\r'] = false // may be one with a line feed
	return p
}

// shortCluster is the size from which a cluster is not replaced as a whole.
const shortCluster = 6

// normalize does not touch kept: the reference takes the first character that
// is left for the first one of the text.
func (p precompiled) normalize(dst, s []byte) ([]byte, bool) {
	for i := 0; i < len(s); {
		if s[i] < utf8.RuneSelf && p.plain[s[i]] && (i+1 == len(s) || s[i+1] < utf8.RuneSelf) {
			dst = append(dst, s[i])
			i++
			continue
		}
		n := clusterEnd(s[i:])
		dst = p.cluster(dst, s[i:i+n])
		i += n
	}
	return dst, true
}

func (p precompiled) cluster(dst, s []byte) []byte {
	if len(s) < shortCluster {
		if t, ok := p.m.shortest(s); ok {
			return append(dst, t...)
		}
	}
	for len(s) > 0 {
		_, n := utf8.DecodeRune(s)
		if t, ok := p.m.shortest(s[:n]); ok {
			dst = append(dst, t...)
		} else {
			dst = append(dst, s[:n]...)
		}
		s = s[n:]
	}
	return dst
}
