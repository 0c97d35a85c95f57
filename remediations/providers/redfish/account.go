package redfish

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations/providers/kit"
)

// timesRefused is how often one BMC may refuse credentials. After that, they are not used there for
// Options.TryAgain.
const timesRefused = 2

// refusals counts how often one BMC refused the same credentials. node is a Node of that BMC, for
// messages; at is the time of the last refusal.
type refusals struct {
	times int
	node  string
	at    time.Time
}

// bar means that a BMC refuses requests with these credentials until a person acts. why is a
// sentence for people.
type bar struct {
	with  credentials
	at    time.Time
	why   string
	times int
}

func (c *Client) refusedBy(b *bmc, with credentials) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	by := c.refused[with.key()]
	if by == nil {
		by = map[string]refusals{}
		c.refused[with.key()] = by
	}
	one := by[b.url.Host]
	if time.Since(one.at) >= c.o.TryAgain {
		one = refusals{}
	}
	by[b.url.Host] = refusals{one.times + 1, b.Node, time.Now()}
	return one.times + 1
}

func (c *Client) takes(b *bmc, with credentials) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.refused[with.key()], b.url.Host)
}

// From the second refusal on, mayTry forbids further requests. If atOnce is true, it forbids them
// from this refusal on.
func (c *Client) bars(b *bmc, with credentials, atOnce bool, why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := bar{with, time.Now(), why, 1}
	if was := c.barred[b.url.Host]; was.with == with {
		now.times += was.times
	}
	if atOnce {
		now.times = timesRefused
	}
	c.barred[b.url.Host] = now
}

func (c *Client) allows(b *bmc) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.barred, b.url.Host)
}

// Refusals by one BMC concern only that BMC. If two BMCs refuse the same credentials, the
// credentials are wrong, and no BMC gets them: BMCs lock accounts after a few tries.
func (c *Client) mayTry(b *bmc, with credentials) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var nodes []string
	var last time.Time
	maps.DeleteFunc(c.refused[with.key()], func(_ string, by refusals) bool { return time.Since(by.at) >= c.o.TryAgain })
	for _, by := range c.refused[with.key()] {
		nodes = append(nodes, strconv.Quote(by.node))
		if by.at.After(last) {
			last = by.at
		}
	}
	slices.Sort(nodes)
	left := func(at time.Time) time.Duration { return (c.o.TryAgain - time.Since(at)).Round(time.Second) }
	own := c.refused[with.key()][b.url.Host]
	switch at := c.barred[b.url.Host]; {
	case len(nodes) > 1:
		return kit.Refuse(kit.Account, "the BMCs of nodes %s refused the same credentials; Drydock does not use them for %s or until their files change; correct them",
			strings.Join(nodes, " and "), text.Duration(left(last)))
	case own.times >= timesRefused:
		return &kit.Refusal{Why: kit.Unreached, NeedsPerson: true, Text: fmt.Sprintf("the BMC refused these credentials %d times; Drydock does not use them there for %s or until their files change; correct %s and %s",
			own.times, text.Duration(left(own.at)), b.UsernameFile, b.PasswordFile)}
	case at.times >= timesRefused && at.with == with && left(at.at) > 0:
		return &kit.Refusal{Why: kit.Unreached, NeedsPerson: true, Text: fmt.Sprintf("%s (Drydock tries again in %s, or when the credentials change)", at.why, text.Duration(left(at.at)))}
	}
	return nil
}
