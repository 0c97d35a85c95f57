package redfish

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/stmcginnis/gofish"

	"drydock.dev/drydock/internal/redact"
	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/providers/kit"
)

// call is several requests to one BMC: it opens a session if the BMC needs one, reads and writes,
// and closes the session.
type call struct {
	client  *Client
	bmc     *bmc
	machine engine.Machine
	wire    *wire
	secrets *redact.Keyring
	with    credentials
	api     *gofish.APIClient
	began   time.Time
}

func (c *Client) open(m engine.Machine) (*call, error) {
	b := c.bmcs[m.Node]
	if b == nil {
		return nil, &kit.Refusal{Why: kit.Machine, Text: "no BMC is configured for this node; add one under providers.redfish.bmcs"}
	}
	return &call{client: c, bmc: b, machine: m, wire: newWire(b, c.o.Timeout), secrets: &redact.Keyring{Mark: "[secret]"}}, nil
}

func (k *call) quote(s string) string { return strconv.Quote(text.Line(k.secrets.Hide(s), 60)) }

// The caller of connect must have acquired the BMC's semaphore (turn), and must call close.
func (k *call) connect(ctx context.Context) error {
	var err error
	if k.with, err = k.bmc.credentials(); err != nil {
		return &kit.Refusal{Why: kit.Unreached, NeedsPerson: true, Text: "the BMC's credentials cannot be read", Cause: err}
	}
	k.secrets.Add(k.with.password)
	k.secrets.Add(base64.StdEncoding.EncodeToString([]byte(k.with.user + ":" + k.with.password)))
	if err := k.client.mayTry(k.bmc, k.with); err != nil {
		return err
	}
	err = k.safely(func() error {
		api, err := gofish.ConnectContext(ctx, gofish.ClientConfig{
			Endpoint: k.bmc.url.String(), Username: k.with.user, Password: k.with.password, BasicAuth: k.bmc.Auth == Basic,
			HTTPClient: &http.Client{Transport: k.wire, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
			// One connection serves all requests of a call, because a TLS handshake takes a BMC
			// about a second.
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
		e := &kit.Refusal{Why: kit.Unreached, NeedsPerson: true, Text: "the BMC made a session but returned no token or no address for it, so Drydock cannot use or close the session; set auth to basic"}
		k.client.bars(k.bmc, k.with, true, e.Text) // each further try would leave another open session
		return e
	}
	k.secrets.Add(session.Token)
	return nil
}

// close releases the BMC's semaphore (turn). It takes at most logoutWithin.
func (k *call) close(ctx context.Context) {
	defer k.bmc.turn.Release(1)
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

// gofish may panic on a BMC's answer; safely returns the panic as an error.
func (k *call) safely(use func() error) (err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("gofish panicked: %v", reason)
		}
	}()
	return use()
}

func (k *call) failed(err error) *kit.Refusal {
	a, there := k.wire.failure()
	if !there { // gofish could not read the answer
		return &kit.Refusal{Why: kit.Machine, Text: "the BMC's answer cannot be read; check its url and firmware", Cause: k.secrets.Error(err)}
	}
	return k.explain(a)
}
