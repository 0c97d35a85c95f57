package redfish

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/stmcginnis/gofish"
	"github.com/stmcginnis/gofish/schemas"

	"drydock.dev/drydock/internal/redact"
	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations/engine"
)

// call is one call to one BMC, from its first request to the end of its session.
type call struct {
	client  *Client
	bmc     *bmc
	machine engine.Machine
	wire    *wire
	secrets *redact.Keyring
	with    credentials
	api     *gofish.APIClient
}

// open is a call that has not begun.
func (c *Client) open(m engine.Machine) (*call, error) {
	b := c.bmcs[m.Node]
	if b == nil {
		return nil, &callError{why: forMachine, text: "no BMC is configured for this node; add one under providers.redfish.bmcs"}
	}
	return &call{client: c, bmc: b, machine: m, wire: newWire(b, c.o.Timeout), secrets: &redact.Keyring{Mark: "[secret]"}}, nil
}

// quote is foreign text in a sentence.
func (k *call) quote(s string) string { return strconv.Quote(text.Line(k.secrets.Hide(s), 60)) }

// connect makes a connection and, where it is configured, a session, for the holder of the turn. close must follow.
func (k *call) connect(ctx context.Context) error {
	var err error
	if k.with, err = k.bmc.credentials(); err != nil {
		return &callError{why: forAccount, text: "there are no credentials", cause: err}
	}
	k.secrets.Add(k.with.password)
	k.secrets.Add(base64.StdEncoding.EncodeToString([]byte(k.with.user + ":" + k.with.password)))
	if err := k.client.mayTry(k.with); err != nil {
		return err
	}
	err = k.safely(func() error {
		api, err := gofish.ConnectContext(ctx, gofish.ClientConfig{
			Endpoint: k.bmc.url.String(), Username: k.with.user, Password: k.with.password, BasicAuth: k.bmc.Auth == Basic,
			HTTPClient: &http.Client{Transport: k.wire, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
			// One connection for all requests of a call: a handshake takes a BMC a second.
			ReuseConnections: true, NoModifyTransport: true,
		})
		k.api = api
		return err
	})
	if err != nil {
		return k.failed(err)
	}
	if k.bmc.Auth == Basic {
		return nil
	}
	session, err := k.api.GetSession()
	if err != nil || session.Token == "" {
		return &callError{why: forMachine, text: "the BMC made a session and gave no token or place for it, so that it could not be used or closed; set auth to basic"}
	}
	k.secrets.Add(session.Token)
	return nil
}

// close ends the session, if there is one, and the connection. It waits no longer than the client's logout.
func (k *call) close(ctx context.Context) {
	defer k.bmc.giveTurn()
	defer k.wire.CloseIdleConnections()
	if k.api == nil || k.bmc.Auth != Session {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), k.client.logout)
	defer cancel()
	k.wire.end()
	_ = k.safely(func() error {
		k.api.WithContext(ctx).Logout()
		return nil
	})
}

// safely runs gofish, which may panic on what a BMC answers.
func (k *call) safely(use func() error) (err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("gofish panicked: %v", reason)
		}
	}()
	return use()
}

// failed explains why gofish could not do what it was asked before the reset. Credentials that were refused are remembered.
func (k *call) failed(err error) *callError {
	a, there := k.wire.failure()
	if !there { // an answer that gofish could not read
		return &callError{why: forMachine, text: "the BMC's answer cannot be read; check its url and firmware", cause: k.secrets.Error(err)}
	}
	e := k.explain(a)
	if e.why == forAccount {
		k.client.remember(k.with, k.machine.Node)
	}
	return e
}

// system is the one System of the BMC that is the machine.
func (k *call) system(want wanted) (*schemas.ComputerSystem, error) {
	var all []*schemas.ComputerSystem
	if err := k.safely(func() (err error) { all, err = k.api.Service.Systems(); return err }); err != nil {
		return nil, k.failed(err)
	}
	k.client.shows(k.bmc, all)
	var found []*schemas.ComputerSystem
	why := "has no systems"
	for _, s := range all {
		if not := want.is(s, k.quote); not != "" {
			why = fmt.Sprintf("has %d systems, none of them the node's: %s %s", len(all), k.quote(s.ID), not)
			continue
		}
		found = append(found, s)
	}
	switch {
	case len(found) == 0:
		return nil, &callError{why: forMachine, text: "the BMC " + why + "; check which machine its url reaches"}
	case len(found) > 1:
		return nil, &callError{why: forMachine, text: fmt.Sprintf("the BMC has %d systems that could be the node's; configure the machine's serialNumber", len(found))}
	}
	if why := k.client.unique(k.bmc, found[0]); why != "" {
		return nil, &callError{why: forMachine, text: why}
	}
	return found[0], nil
}

// mayTry says whether the credentials may be used: one refusal is enough.
func (c *Client) mayTry(with credentials) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	no, there := c.refused[with.key()]
	if !there {
		return nil
	}
	if left := c.o.TryAgain - time.Since(no.at); left > 0 {
		return &callError{why: forAccount, text: fmt.Sprintf("the BMC of node %q refused these credentials, which are not used again for %s or until their files change; correct them",
			no.node, left.Round(time.Second))}
	}
	delete(c.refused, with.key())
	return nil
}

func (c *Client) remember(with credentials, node string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refused[with.key()] = refusal{node: node, at: time.Now()}
}
