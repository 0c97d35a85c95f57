package civo

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"time"

	"github.com/civo/civogo"

	"drydock.dev/drydock/internal/bounded"
)

const tries = 3

// ask repeats the read after an error that may pass. Options.Timeout limits all tries together. The
// caller must hold c.turn.
func (c *Client) ask(ctx context.Context, use func(*civogo.Client) error) outcome {
	ctx, cancel := context.WithTimeout(ctx, c.o.Timeout)
	defer cancel()
	for try, wait := 1, c.o.Backoff; ; try, wait = try+1, 2*wait {
		o := c.call(ctx, nil, use)
		if try == tries || !o.transient() || o.retryAfter > wait || !pause(ctx, wait) {
			return o
		}
	}
}

// transient returns false if, for example, Civo refuses the key or answers with an HTML page: the
// next answer would be the same.
func (o outcome) transient() bool {
	var untrusted *tls.CertificateVerificationError
	switch {
	case o.keyError != nil, errors.Is(o.transport, bounded.ErrTooLarge), errors.Is(o.transport, errUnused), errors.As(o.transport, &untrusted):
		return false
	case o.transport != nil:
		return true
	}
	return o.unavailable()
}

func (o outcome) unavailable() bool {
	return o.status >= http.StatusInternalServerError || o.status == http.StatusTooManyRequests || o.status == http.StatusRequestTimeout
}

func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// The caller must hold c.turn.
func (c *Client) instances(ctx context.Context, t task) ([]civogo.Instance, error) {
	var listed []civogo.Instance
	o := c.ask(ctx, func(api *civogo.Client) (err error) {
		listed, err = api.ListKubernetesClusterInstances(c.o.ClusterID)
		return err
	})
	if err := c.readVerdict(t, o, "list of instances"); err != nil {
		return nil, err
	}
	c.learn(listed)
	return listed, nil
}

// The caller must hold c.turn.
func (c *Client) pools(ctx context.Context, t task) ([]civogo.KubernetesPool, error) {
	var listed []civogo.KubernetesPool
	o := c.ask(ctx, func(api *civogo.Client) (err error) {
		listed, err = api.ListKubernetesClusterPools(c.o.ClusterID)
		return err
	})
	return listed, c.readVerdict(t, o, "list of node pools")
}
