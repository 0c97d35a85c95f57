// Package civo reboots and replaces the machines behind Nodes through Civo's API.
//
// The calls are civogo's, but civogo cannot be trusted with a machine on its
// own. What v0.6.5 does, and what is done about it here:
//
//   - Its calls take no context and have no time limit, and sendRequest replaces
//     the http.Client's transport on every call, so no option of civogo's can
//     bound them. Each new transport also leaves an idle connection behind,
//     ignores the proxy settings, and follows redirects with the POST repeated.
//     Therefore civogo speaks to a gateway of ours on the loopback interface,
//     open for that one call, and the gateway speaks to Civo: with a context,
//     time limits, an answer of bounded size, and exact knowledge of whether a
//     request left. The API key is the gateway's; civogo never has it.
//   - Its finder falls back to a partial match: with node-1 gone it returns
//     node-10. It is not used. A machine is found by whole ID or whole hostname.
//   - HTTP 200 with a result other than "success" is no error to it. Here it is.
//   - Its error decoder panics on a reason that is no string. Calls run with recover.
//   - A lost connection and a refused one look the same in its errors. What
//     happened is taken from the gateway, never from the error's text.
//   - LastJSONResponse is not synchronised. Every call has a client of its own.
//   - Its errors quote what Civo, or a page in its place, said. Every text that
//     leaves this package is bounded, and the API key is taken out of it.
//
// A question is asked again where the answer may be another one in a moment; a
// write never is. What is recycled is named to Civo by its hostname alone, and
// Civo takes no condition with it, so the look-up right before the call is all
// there is to say that the hostname is still the same machine's.
//
// A machine to reboot is looked up in the cluster's list of instances the first
// time, and by its ID alone from then on: the list grows with the cluster, and is
// asked for again wherever the one instance is not exactly what it should be.
//
// The order for a reboot: Find (changes nothing: before the intent is written),
// then Reboot or SoftReboot. For a replacement: Look, whose Before goes on record
// with the intent, then Recycle, then Replaced until it says that nothing is
// missing.
package civo

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"drydock.dev/drydock/internal/bounded"
	"drydock.dev/drydock/internal/redact"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
)

const (
	defaultTimeout = 30 * time.Second
	// defaultIssueWithin is the intent's: a call goes out within 10 s of its
	// intent or not at all.
	defaultIssueWithin = 10 * time.Second
	// defaultBackoff and its double fit well into the time in which a call must go out.
	defaultBackoff = 500 * time.Millisecond
	// maxAnswer bounds what Civo may answer. A list entry is about 1.5 kB, so
	// this is room for some five thousand machines.
	maxAnswer = 8 << 20
)

// answers bound what an answer may become. An entry of a list has about 45 values, 3 of them objects; civogo makes a
// kilobyte of each object, even of an empty one. With its copies of the text all of it stays below 64 MiB.
var answers = bounded.Limits{Bytes: maxAnswer, Values: 400_000, Objects: 20_000, Depth: 32}

// Options configure a Client.
type Options struct {
	// APIURL is Civo's API, such as https://api.civo.com. ClusterID is the UUID
	// of the cluster, Region its region. APIKeyFile is read again for each call,
	// so a new key needs no restart. All four are required.
	APIURL, ClusterID, Region, APIKeyFile string
	// Timeout bounds how long a caller waits for one request. Zero: 30 s.
	Timeout time.Duration
	// IssueWithin is how long after a write was asked for its request may still
	// leave, looking up the machine and waiting for another call included.
	// Later, it is refused. Zero: 10 s.
	IssueWithin time.Duration
	// Backoff is how long to wait before a question is asked a second time; it
	// doubles for the third, which is the last. Zero: 500 ms.
	Backoff time.Duration
	// UserAgentVersion is Drydock's version, for Civo's logs. Empty: "dev".
	UserAgentVersion string
	// Late, if set, is told of an answer that came after a write had given up with
	// an unknownError: what the write would have come to, and why that is not an
	// acceptance. It is not called if no answer comes within another Timeout. It
	// runs on a goroutine of its own. The machine's Attempt says which call it was.
	Late func(m engine.Machine, outcome remediations.CallOutcome, why error)
}

// Client calls Civo, one call at a time. It is safe for concurrent use.
type Client struct {
	o    Options
	api  *url.URL
	turn chan struct{} // holds one token: whoever has it may call
	keys redact.Keyring
	// members are the instances of the cluster's list when it was last read. They
	// belong to the holder of the turn.
	members      map[string]struct{}
	memberWithin time.Duration
}

// New checks the options and that the key file can be read. It does not call
// Civo. The error names the option that is missing or wrong.
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
	c := &Client{o: o, api: api, turn: make(chan struct{}, 1), keys: redact.Keyring{Mark: "[API key]"}, memberWithin: memberWithin}
	c.turn <- struct{}{}
	return c, nil
}

// Name is how configuration, events and metrics call this provider.
func (c *Client) Name() string { return "civo" }

// takeTurn waits until no other call is under way.
func (c *Client) takeTurn(ctx context.Context, t task) error {
	err := ctx.Err() // select would choose at random
	if err == nil {
		select {
		case <-c.turn:
			return nil
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	return c.refuse(t, reasonBusy, err, "waiting for an earlier call to Civo to end")
}

func (c *Client) giveTurn() { c.turn <- struct{}{} }

// plainID reports whether an ID can stand in a path as it is. Civo's are UUIDs.
func plainID(id string) bool {
	for _, r := range id {
		if (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r != '-' {
			return false
		}
	}
	return id != "" && len(id) <= 128
}
