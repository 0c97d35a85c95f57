// Package civo reboots and replaces the machines behind Nodes through Civo's API.
//
// The calls are civogo's, but civogo alone is not safe enough to change a machine. What v0.6.5
// does, and what this package does about it:
//
//   - Its calls take no context and have no time limit. sendRequest replaces the http.Client's
//     transport on every call, so no option of civogo can bound them. Each new transport also
//     leaves an idle connection behind, ignores the proxy settings, and follows redirects with the
//     POST repeated. Therefore civogo speaks to a gateway of this package on the loopback
//     interface, which is open for that one call. The gateway speaks to Civo with a context, time
//     limits and an answer of bounded size, and knows exactly whether a request left. The gateway
//     has the API key; civogo never has it.
//   - Its finder falls back to a partial match: if node-1 is gone, it returns node-10. This package
//     does not use the finder. It finds a machine by its whole ID or its whole hostname.
//   - It does not treat HTTP 200 with a result other than "success" as an error. This package does.
//   - Its error decoder panics if the reason in an answer is not a string. Calls run with recover.
//   - A lost connection and a refused one look the same in its errors. The gateway shows what
//     happened; the error's text is never used for that.
//   - LastJSONResponse is not synchronised. Every call has a client of its own.
//   - Its errors quote the answer of Civo, or of a page in its place. Every text that leaves this
//     package is bounded, and the API key is removed from it.
//
// A read is repeated if the answer may change in a moment; a write never is. A recycle names the
// machine to Civo by its hostname alone, and Civo accepts no condition. So only the look-up right
// before the call shows that the hostname still belongs to the same machine.
//
// A machine to reboot is looked up in the cluster's list of instances the first time, and by its ID
// alone afterwards, because the list grows with the cluster. The list is read again if the single
// instance is not exactly as expected.
//
// The order for a reboot: Find (changes nothing: before the intent is written), then Reboot or
// SoftReboot. For a replacement: Look, whose Before is recorded with the intent, then Recycle, then
// Replaced until it reports that nothing is missing.
package civo

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"golang.org/x/sync/semaphore"

	"drydock.dev/drydock/internal/bounded"
	"drydock.dev/drydock/internal/redact"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
)

const (
	defaultTimeout = 30 * time.Second
	// defaultIssueWithin is the intent's: a call leaves within 10 s of its intent or not at all.
	defaultIssueWithin = 10 * time.Second
	// defaultBackoff and its double fit well into the time limit for sending a call.
	defaultBackoff = 500 * time.Millisecond
	// maxAnswer bounds what Civo may answer. A list entry is about 1.5 kB, so
	// this is room for some five thousand machines.
	maxAnswer = 8 << 20
)

// answers bounds the size of a decoded answer. An entry of a list has about 45 values, 3 of them
// objects; civogo allocates a kilobyte for each object, even for an empty one. Together with the
// copies of the text, an answer stays below 64 MiB.
var answers = bounded.Limits{Bytes: maxAnswer, Values: 400_000, Objects: 20_000, Depth: 32}

// Options configure a Client.
type Options struct {
	// APIURL is the URL of Civo's API, for example https://api.civo.com. ClusterID is the UUID of
	// the cluster, Region its region. APIKeyFile is read again for each call, so a new key needs no
	// restart. All four are required.
	APIURL, ClusterID, Region, APIKeyFile string
	// Timeout bounds how long a caller waits for one request. Zero: 30 s.
	Timeout time.Duration
	// IssueWithin is how long after the start of a write its request may still leave, including the
	// look-up of the machine and the wait for another call. Later, the write is refused. Zero: 10
	// s.
	IssueWithin time.Duration
	// Backoff is how long to wait before the second try of a read; it doubles for the third and
	// last one. Zero: 500 ms.
	Backoff time.Duration
	// UserAgentVersion is Drydock's version, for Civo's logs. Empty: "dev".
	UserAgentVersion string
	// Late, if set, is called with an answer that came after a write had given up with an
	// unknownError. outcome is what the write would have returned, why the reason if it is not an
	// acceptance. Late is not called if no answer comes within another Timeout. It runs in its own
	// goroutine. The machine's Attempt identifies the call.
	Late func(m engine.Machine, outcome remediations.CallOutcome, why error)
}

// Client calls Civo, one call at a time. It is safe for concurrent use.
type Client struct {
	o    Options
	api  *url.URL
	turn *semaphore.Weighted // its holder may call
	keys redact.Keyring
	// members are the instances of the cluster's list when it was last read. Only the holder of the
	// turn may use them.
	members      map[string]struct{}
	memberWithin time.Duration
}

// New checks the options and that the key file can be read. It does not call Civo. The error names
// the option that is missing or wrong.
func New(o Options) (*Client, error) {
	for _, required := range []struct{ name, value string }{
		{"API URL", o.APIURL}, {"cluster ID", o.ClusterID}, {"region", o.Region}, {"API key file", o.APIKeyFile},
	} {
		if strings.TrimSpace(required.value) == "" {
			return nil, fmt.Errorf("configuring Civo: the %s is empty", required.name)
		}
	}
	if !plainID(o.ClusterID) {
		return nil, fmt.Errorf("configuring Civo: the cluster ID %q is not an ID of letters, digits and dashes", o.ClusterID)
	}
	api, err := url.Parse(o.APIURL)
	if err != nil || (api.Scheme != "https" && api.Scheme != "http") || api.Host == "" ||
		api.User != nil || api.RawQuery != "" || api.Fragment != "" {
		return nil, errors.New("configuring Civo: the API URL is not of the form https://host")
	}
	if o.Timeout < 0 || o.IssueWithin < 0 || o.Backoff < 0 {
		return nil, errors.New("configuring Civo: a time limit is negative")
	}
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
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
	return &Client{o: o, api: api, turn: semaphore.NewWeighted(1), keys: redact.Keyring{Mark: "[API key]"}, memberWithin: memberWithin}, nil
}

// Name is the provider's name in the configuration, Events and metrics.
func (c *Client) Name() string { return "civo" }

// takeTurn waits until no other call is under way.
func (c *Client) takeTurn(ctx context.Context, t task) error {
	if err := c.turn.Acquire(ctx, 1); err != nil {
		return c.refuse(t, reasonBusy, err, "waiting for an earlier call to Civo to end")
	}
	return nil
}

func (c *Client) giveTurn() { c.turn.Release(1) }

// plainID reports whether an ID can stand in a path as it is. Civo's are UUIDs.
func plainID(id string) bool {
	for _, r := range id {
		if (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r != '-' {
			return false
		}
	}
	return id != "" && len(id) <= 128
}
