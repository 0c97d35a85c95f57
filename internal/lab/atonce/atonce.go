// Package atonce counts, for a test, how many calls run at the same time.
//
// Two atomic integers are not enough: between counting and comparing with the maximum, another
// caller may store a larger maximum, which would then be overwritten.
package atonce

import "sync"

// Count has the current and the largest number. Its zero value is ready to use.
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
