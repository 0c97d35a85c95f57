// Package bmc is a provider of machines that only tests use. It shows how a provider outside
// Drydock is added: one line in each of the program's two lists.
package bmc

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"drydock.dev/drydock/internal/config/section"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/test/e2e/bmc/settings"
)

// Long, because the simulated boards take their time.
const callFor = time.Minute

// Steps returns the steps that the provider carries out, if it is configured.
func Steps(configured section.Provider) (map[string]engine.Actuator, time.Duration, error) {
	c, ok := configured.(*settings.BMC)
	if !ok {
		return nil, 0, nil
	}
	return map[string]engine.Actuator{"reboot": boards{c.URL}}, callFor, nil
}

type boards struct{ url *url.URL }

// Survey implements engine.Surveyor.
func (b boards) Survey(ctx context.Context, m engine.Machine) remediations.Survey {
	if _, err := b.ask(ctx, http.MethodGet, m); err != nil {
		return remediations.Survey{Trouble: err.Error(), Again: remediations.AskPassing}
	}
	return remediations.Survey{}
}

// Act implements engine.Actuator.
func (b boards) Act(ctx context.Context, m engine.Machine, mayStill func() error) (remediations.CallOutcome, error) {
	if err := mayStill(); err != nil {
		return remediations.CallRefused, err
	}
	answered, err := b.ask(ctx, http.MethodPost, m)
	switch {
	case err == nil:
		return remediations.CallAccepted, nil
	case answered:
		return remediations.CallRefused, err
	}
	return remediations.CallUnknown, err
}

func (b boards) ask(ctx context.Context, method string, m engine.Machine) (answered bool, err error) {
	req, err := http.NewRequestWithContext(ctx, method, b.url.JoinPath(strings.TrimPrefix(m.ProviderID, "bmc://")).String(), nil)
	if err != nil {
		return true, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return false, err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusNoContent {
		return true, fmt.Errorf("the board of Node %s answers %s", m.Node, res.Status)
	}
	return true, nil
}
