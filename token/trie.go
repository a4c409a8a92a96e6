// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package token

import "bytes"

// trie finds a few fixed texts in a text: the leftmost one, the longest among
// those that start there. It is the zero value or made by newTrie.
type trie struct {
	nodes []trieNode
	first [256]bool // bytes that a text starts with
	only  int       // the one such byte, or -1
}

type trieNode struct {
	edges []trieEdge
	value int32 // -1: no text ends here
}

type trieEdge struct {
	b    byte
	next int32
}

func newTrie() *trie {
	return &trie{nodes: []trieNode{{value: -1}}, only: -1}
}

// add stores a text, which is not empty; it reports false if it was there.
func (t *trie) add(s string, value int32) bool {
	at := int32(0)
	for _, b := range []byte(s) {
		next := t.step(at, b)
		if next < 0 {
			next = int32(len(t.nodes))
			t.nodes = append(t.nodes, trieNode{value: -1})
			t.nodes[at].edges = append(t.nodes[at].edges, trieEdge{b, next})
		}
		at = next
	}
	if t.nodes[at].value >= 0 {
		return false
	}
	t.nodes[at].value = value
	t.first[s[0]] = true
	t.only = -1
	if len(t.nodes[0].edges) == 1 {
		t.only = int(s[0])
	}
	return true
}

func (t *trie) step(at int32, b byte) int32 {
	for _, e := range t.nodes[at].edges {
		if e.b == b {
			return e.next
		}
	}
	return -1
}

// longest is the length and the value of the longest text that s starts with;
// the length is 0 if there is none.
func (t *trie) longest(s []byte) (n int, value int32) {
	if len(s) == 0 || !t.first[s[0]] {
		return 0, -1
	}
	at := int32(0)
	value = -1
	for i, b := range s {
		if at = t.step(at, b); at < 0 {
			break
		}
		if v := t.nodes[at].value; v >= 0 {
			n, value = i+1, v
		}
	}
	return n, value
}

// find is the next text in s from offset i on; end is 0 if there is none.
func (t *trie) find(s []byte, i int) (start, end int, value int32) {
	for i < len(s) {
		if t.only >= 0 {
			k := bytes.IndexByte(s[i:], byte(t.only))
			if k < 0 {
				break
			}
			i += k
		}
		for i < len(s) && !t.first[s[i]] {
			i++
		}
		if n, v := t.longest(s[i:]); n > 0 {
			return i, i + n, v
		}
		i++
	}
	return 0, 0, -1
}
