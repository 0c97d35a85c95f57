// Package atonce counts, for a test, how many calls run at the same time.
//
// Two atomic integers would not be enough. A caller counts, and then compares its count with the
// maximum. In between, another caller may store a larger maximum, which the first caller would then
// overwrite.
package atonce

import "sync"

// Count has the current number and the largest number so far. Its zero value is ready to use.
type Count struct {
	mu        sync.Mutex
	now, most int
}

// Enter adds one, and returns the new number.
func (c *Count) Enter() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now++
	c.most = max(c.most, c.now)
	return c.now
}

// Leave subtracts one.
func (c *Count) Leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now--
}

// Now returns the current number.
func (c *Count) Now() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Most returns the largest number so far.
func (c *Count) Most() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.most
}
