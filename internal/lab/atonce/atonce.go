// Package atonce counts, for a test, how many are at something at the same time.
//
// Two atomic integers will not do: between one caller's count and its look at the largest so far, another may have put a
// larger one there, which the first then overwrites.
package atonce

import "sync"

// Count is of those who are there now, and of the most who ever were at once. Its zero value counts none.
type Count struct {
	mu        sync.Mutex
	now, most int
}

// Enter adds one, and says how many there are with it.
func (c *Count) Enter() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now++
	c.most = max(c.most, c.now)
	return c.now
}

// Leave takes one off.
func (c *Count) Leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now--
}

// Now is how many are there.
func (c *Count) Now() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Most is how many have been there at once, at the most.
func (c *Count) Most() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.most
}
