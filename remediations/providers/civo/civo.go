// Package civo reboots and replaces the machines behind Nodes through Civo's API.
//
// It uses Civo's library civogo, which alone is not safe enough to change a machine. This list has
// the weaknesses of its v0.6.5, and how this package avoids them:
//
//   - Its calls take no context and have no time limit. sendRequest replaces the http.Client's
//     transport for each call, so no option of civogo can limit a call. Each new transport leaves
//     an idle connection behind, ignores the proxy settings, and repeats a POST after a redirect.
//     So civogo sends each request to a gateway of this package on the loopback interface, which
//     exists for this call only. The gateway sends the request to Civo with a context and limits,
//     and knows whether the request was sent. Only the gateway has the API key.
//   - Its finder accepts a partial match: if node-1 is gone, it returns node-10. This package does
//     not use the finder. It finds a machine by its whole ID or its whole hostname.
//   - It accepts HTTP 200 with a result other than "success". This package treats it as an error.
//   - Its error decoder panics if the reason in an answer is not a string. Calls run with recover.
//   - Its errors do not show whether a connection was refused or was lost later. The gateway knows
//     what happened, and the text of civogo's error is never used for that.
//   - LastJSONResponse is not synchronised. Each call has a client of its own.
//   - Its errors quote the answer of Civo, or of another server. This package limits the length of
//     each text that it returns, and removes the API key.
//
// A read is repeated if the answer may change in a moment. A write is never repeated. A recycle
// names the machine to Civo by its hostname only, and Civo accepts no condition. So only the
// look-up right before the call shows that the hostname still belongs to the same machine.
//
// Before the first reboot, a machine is looked up in the cluster's list of instances. Later it is
// looked up by its ID, because the list grows with the cluster. If that instance is not exactly as
// expected, the list is read again.
//
// The order of calls for a reboot: Find, before the intent is written, and then Reboot or
// SoftReboot. For a replacement: Look, whose Before is recorded with the intent; then Recycle; then
// Replaced, until it reports that nothing is missing.
package civo

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/semaphore"

	"drydock.dev/drydock/internal/bounded"
	"drydock.dev/drydock/internal/redact"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/providers/civo/settings"
)

const (
	// defaultIssueWithin is the engine's limit: a call is sent within 10 s of its intent, or not at
	// all.
	defaultIssueWithin = 10 * time.Second
	// defaultBackoff and its double together are far below the time limit for sending a call.
	defaultBackoff = 500 * time.Millisecond
	// maxAnswer is the largest answer in bytes. A list entry has about 1.5 kB, so a list of about
	// 5,000 machines fits.
	maxAnswer = 8 << 20
)

// answers limits a decoded answer. A list entry has about 45 JSON values, 3 of them objects. civogo
// allocates a kilobyte for each object, even for an empty one. Together with the copies of the
// text, an answer takes less than 64 MiB.
var answers = bounded.Limits{Bytes: maxAnswer, Values: 400_000, Objects: 20_000, Depth: 32}

// Options configure a Client: the section of the configuration, and what it needs beside that.
type Options struct {
	settings.Civo
	// IssueWithin limits the time from the start of a write until its request is sent. It includes
	// the look-up of the machine and the wait for another call. A later request is refused. The
	// default is 10 s.
	IssueWithin time.Duration
	// Backoff is the wait before the second try of a read. The wait before the third and last try
	// is twice as long. The default for the first wait is 500 ms.
	Backoff time.Duration
	// UserAgentVersion is Drydock's version, for Civo's logs. The default is "dev".
	UserAgentVersion string
	// Late, if set, is called with an answer that comes after a write has returned an unknownError.
	// outcome is what the write would have returned, and why its error. Late is not called if no
	// answer comes within another Timeout. It runs in a goroutine of its own. The machine's Attempt
	// identifies the call.
	Late func(m engine.Machine, outcome remediations.CallOutcome, why error)
}

// Client calls Civo, one call at a time. It is safe for concurrent use.
type Client struct {
	o    Options
	turn *semaphore.Weighted // the holder may call Civo
	keys redact.Keyring
	// members has the IDs of the instances in the cluster's list when it was last read. Only the
	// holder of the turn may use it.
	members      map[string]struct{}
	memberWithin time.Duration
}

// New checks that the key file can be read. It sends no request.
func New(o Options) (*Client, error) {
	if o.IssueWithin == 0 {
		o.IssueWithin = defaultIssueWithin
	}
	if o.Backoff == 0 {
		o.Backoff = defaultBackoff
	}
	if o.UserAgentVersion == "" {
		o.UserAgentVersion = "dev"
	}
	if _, err := readKey(o.APIKeyFile); err != nil {
		return nil, fmt.Errorf("configuring Civo: %w", err)
	}
	return &Client{o: o, turn: semaphore.NewWeighted(1), keys: redact.Keyring{Mark: "[API key]"}, memberWithin: memberWithin}, nil
}

// Name returns the provider's name in the configuration, Events and metrics.
func (c *Client) Name() string { return "civo" }

// takeTurn waits until no other call to Civo is in progress.
func (c *Client) takeTurn(ctx context.Context, t task) error {
	if err := c.turn.Acquire(ctx, 1); err != nil {
		return c.refuse(t, reasonBusy, err, "waiting for an earlier call to Civo to end")
	}
	return nil
}

func (c *Client) giveTurn() { c.turn.Release(1) }

// plainID reports whether an ID can be used in a URL's path unchanged. Civo's IDs are UUIDs.
func plainID(id string) bool {
	for _, r := range id {
		if (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r != '-' {
			return false
		}
	}
	return id != "" && len(id) <= 128
}
