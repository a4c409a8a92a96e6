// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package table

import (
	"container/list"
	"errors"
	"sync"
)

// keptPages is how many bytes of decoded pages stay in memory, of all tables.
const keptPages = 128 << 20

// decoded is the pages of all open tables. Readers that take turns with files, or
// want few rows of a page at a time, do not decode it again each time, and several
// that read the same page have it once.
var decoded = newPageCache(keptPages)

// A pageCache keeps the decoded pages that were used last. Pages are not written to
// once they are in it. It may be used by several goroutines at once.
type pageCache struct {
	mu    sync.Mutex
	limit int64 // bytes; the page that was added last stays even if it has more
	size  int64
	order *list.List // of *cachedPage, the one used last in front
	at    map[pageKey]*list.Element
}

func newPageCache(limit int64) *pageCache {
	return &pageCache{limit: limit, order: list.New(), at: map[pageKey]*list.Element{}}
}

// pageKey names a page.
type pageKey struct {
	file        *parquetFile
	group, leaf int
	page        int // dictionaryKey: the dictionary
}

// dictionaryKey stands for the dictionary of a column in a group.
const dictionaryKey = -1

// cachedPage is a page, once it is decoded.
type cachedPage struct {
	key  pageKey
	once sync.Once
	page *page
	err  error
	size int64 // 0 until it is decoded
}

var errUndecoded = errors.New("the decoder failed for another reader of the page")

// get gives a page, which decode makes if it is not there. Those that ask for the
// same one meanwhile wait for it. An error is not kept.
func (c *pageCache) get(key pageKey, decode func() (*page, error)) (*page, error) {
	e := c.entry(key)
	e.once.Do(func() {
		e.err = errUndecoded // unless decode comes back
		defer c.settle(e)
		e.page, e.err = decode()
	})
	return e.page, e.err
}

// entry finds or adds the entry of a page, which is then the one used last.
func (c *pageCache) entry(key pageKey) *cachedPage {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at := c.at[key]; at != nil {
		c.order.MoveToFront(at)
		return at.Value.(*cachedPage)
	}
	e := &cachedPage{key: key}
	c.at[key] = c.order.PushFront(e)
	return e
}

// touch makes a page the one used last, if it is there.
func (c *pageCache) touch(key pageKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at := c.at[key]; at != nil {
		c.order.MoveToFront(at)
	}
}

// settle counts an entry that was decoded and makes room for it, or removes it.
func (c *pageCache) settle(e *cachedPage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	mine := c.at[e.key]
	if mine == nil || mine.Value != e {
		return // its table was closed
	}
	if e.err != nil {
		c.remove(mine)
		return
	}
	e.size = e.page.bytes()
	c.size += e.size
	for at := c.order.Back(); at != nil && c.size > c.limit; {
		before := at.Prev()
		if at != mine && at.Value.(*cachedPage).size > 0 {
			c.remove(at)
		}
		at = before
	}
}

func (c *pageCache) remove(at *list.Element) {
	e := c.order.Remove(at).(*cachedPage)
	delete(c.at, e.key)
	c.size -= e.size
}

// drop removes the pages of a file.
func (c *pageCache) drop(f *parquetFile) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for at := c.order.Front(); at != nil; {
		next := at.Next()
		if at.Value.(*cachedPage).key.file == f {
			c.remove(at)
		}
		at = next
	}
}
