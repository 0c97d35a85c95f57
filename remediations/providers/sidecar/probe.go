package sidecar

import (
	"context"
	"fmt"
	"net/http"
)

// probe asks the sidecar how it is. Only a whole answer counts, and only its code.
func (c *Client) probe(ctx context.Context, at target) (Health, string) {
	ctx, cancel := context.WithTimeout(ctx, c.o.HealthTimeout)
	defer cancel()
	got, err := c.get(ctx, at)
	if err == nil {
		err = got.torn
	}
	if err != nil {
		return Unreachable, fmt.Sprintf("the sidecar of pod %s does not answer at %s: %s", at.pod, at.addr, c.tokens.Error(err))
	}
	health := ProbeError
	switch got.status {
	case c.o.ReadyCode:
		health = Ready
	case c.o.NotReadyCode:
		health = NotReady
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
