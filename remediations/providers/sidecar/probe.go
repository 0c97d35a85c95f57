package sidecar

import (
	"context"
	"fmt"
	"net/http"

	kind "drydock.dev/drydock/remediations/targets/sidecar"
)

// probe also returns a text for people. An incomplete answer counts as no answer, and of a complete
// one only the status code counts.
func (c *Client) probe(ctx context.Context, at target) (kind.Health, string) {
	ctx, cancel := context.WithTimeout(ctx, c.o.HealthTimeout)
	defer cancel()
	got, err := c.get(ctx, at)
	if err == nil {
		err = got.torn
	}
	if err != nil {
		return kind.HealthUnreachable, fmt.Sprintf("the sidecar of pod %s does not answer at %s: %s", at.pod, at.addr, c.tokens.Error(err))
	}
	health := kind.HealthProbeError
	switch got.status {
	case c.o.ReadyCode:
		health = kind.HealthReady
	case c.o.NotReadyCode:
		health = kind.HealthNotReady
	}
	return health, fmt.Sprintf("the sidecar of pod %s answers %d%s", at.pod, got.status, said(answerText(c.tokens, got.body)))
}

func (c *Client) get(ctx context.Context, at target) (reply, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url(at, c.o.HealthPath), nil)
	if err != nil {
		return reply{}, err
	}
	conn, err := c.connect(ctx, at)
	if err != nil {
		return reply{}, err
	}
	return exchange(conn, req)
}
