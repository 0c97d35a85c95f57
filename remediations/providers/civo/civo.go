// Package civo reboots and replaces the machines behind Nodes through Civo's API.
//
// It uses Civo's library civogo, which alone is not safe enough to change a machine. This list has
// the weaknesses of civogo v0.6.5, and how this package avoids them:
//
//   - Its calls take no context and have no time limit. sendRequest replaces the http.Client's
//     transport for each call, so no option of civogo can limit a call. Each new transport leaves
//     an idle connection behind, ignores the proxy settings, and repeats a POST after a redirect.
//     So this package starts a gateway for each call: an HTTP server on the loopback interface.
//     civogo sends its request to the gateway, and the gateway sends the request to Civo with a
//     context and limits. The gateway knows whether the request was sent, and only the gateway has
//     the API key.
//   - Its finder accepts a partial match: if node-1 is gone, it returns node-10. This package does
//     not use the finder. It finds a machine by its whole ID or its whole hostname.
//   - It accepts HTTP 200 with a result other than "success". This package treats it as an error.
//   - Its error decoder panics if the reason in an answer is not a string. Calls run with recover.
//   - Its errors do not show whether a connection was refused, or was lost after the request was
//     sent. The gateway knows this, so this package does not read it from the text of civogo's
//     error.
//   - LastJSONResponse is not synchronised. Each call has its own civogo client.
//   - Its errors quote the answer of Civo, or of another server. This package limits the length of
//     each text that it returns, and removes the API key.
//
// A read is repeated if the error may pass in a moment. A write is never repeated. A recycle (the
// replacement of a machine) names the machine to Civo only by its hostname, and Civo accepts no
// precondition. So only the look-up right before the call shows that the hostname still belongs to
// the same machine.
//
// This package looks up a machine in the cluster's list of instances the first time. The list grows
// with the cluster, so later look-ups request only the instance, by its ID. If that instance is not
// exactly as expected, this package reads the list again.
//
// The calls for a reboot are Find, before the intent is written on the Node, and then Reboot or
// SoftReboot. The calls for a replacement are:
//
//   - Look returns a Before, which Drydock records on the Node with the intent.
//   - Recycle starts the replacement.
//   - Replaced is called until it reports that nothing is missing.
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
	// defaultIssueWithin is also the engine's limit: a call must be sent within 10 s after the
	// intent was written on the Node, or not at all.
	defaultIssueWithin = 10 * time.Second
	// defaultBackoff is doubled before the third try. Both waits together are far below
	// defaultIssueWithin.
	defaultBackoff = 500 * time.Millisecond
	// maxAnswer is the largest answer in bytes. A list entry has about 1.5 kB, so a list of about
	// 5,000 machines fits.
	maxAnswer = 8 << 20
)

// A list entry has about 45 JSON values, 3 of them objects, and civogo allocates a kilobyte for
// each object. So an answer takes less than 64 MiB of memory, including the copies of its text.
var answers = bounded.Limits{Bytes: maxAnswer, Values: 400_000, Objects: 20_000, Depth: 32}

// Options configure a Client: the section providers.civo, and values that are not in the
// configuration.
type Options struct {
	settings.Civo
	// IssueWithin limits the time from the start of a write until its request is sent. This
	// includes the wait for another call to end, and the look-up of the machine. After this time,
	// the request is not sent. The default is 10 s.
	IssueWithin time.Duration
	// Backoff is the wait before the second try of a read. The wait before the third and last try
	// is twice as long. The default for the first wait is 500 ms.
	Backoff time.Duration
	// UserAgentVersion is Drydock's version, for Civo's logs.
	UserAgentVersion string
	// Late, if set, gets an answer of Civo that comes after Reboot, SoftReboot or Recycle has
	// returned an unknownError. m.Attempt identifies the call. Late runs in its own goroutine.
	Late func(m engine.Machine, outcome remediations.CallOutcome, why error)
}

// Client calls Civo, one call at a time. It is safe for concurrent use.
type Client struct {
	o    Options
	turn *semaphore.Weighted // the holder may call Civo
	keys redact.Keyring
	// members has the IDs in the cluster's last list of instances. Only the holder of turn may use
	// it.
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

func (c *Client) takeTurn(ctx context.Context, t task) error {
	if err := c.turn.Acquire(ctx, 1); err != nil {
		return c.refuse(t, reasonBusy, err, "waiting for an earlier call to Civo to end")
	}
	return nil
}

func (c *Client) giveTurn() { c.turn.Release(1) }

// plainID reports whether the ID needs no escaping in a URL's path. Civo's IDs are UUIDs.
func plainID(id string) bool {
	for _, r := range id {
		if (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r != '-' {
			return false
		}
	}
	return id != "" && len(id) <= 128
}
