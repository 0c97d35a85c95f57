package civo

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/civo/civogo"
)

// memberWithin limits the request for one instance. It is short: without an answer, there must be
// time to read the list before the call must be sent.
const memberWithin = 3 * time.Second

// learn records the IDs of the cluster's instances. The caller must hold the turn.
func (c *Client) learn(listed []civogo.Instance) {
	c.members = make(map[string]struct{}, len(listed))
	for _, in := range listed {
		c.members[in.ID] = struct{}{}
	}
}

// member looks up one instance by its ID. This is cheaper than the list of all instances, which
// grows with the cluster. By ID, Civo returns every instance of the account. So member requests
// only an ID that the cluster's list has contained: Civo never reuses an ID, and an instance never
// moves to another cluster.
//
// found is true only if the answer has exactly that ID and hostname. Otherwise the caller must read
// the list, also after "not found". The exception is an error: Civo refuses the key, or asks
// clients to wait.
func (c *Client) member(ctx context.Context, t task, id string) (in Instance, found bool, err error) {
	if _, known := c.members[id]; !known {
		return Instance{}, false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, min(c.memberWithin, c.o.Timeout))
	defer cancel()
	var got *civogo.Instance
	o := c.call(ctx, nil, func(api *civogo.Client) (err error) {
		got, err = api.GetInstance(id)
		return err
	})
	err = c.readVerdict(t, o, "instance")
	switch {
	case err != nil && (o.status == http.StatusUnauthorized || o.retryAfter > 0):
		return Instance{}, false, err
	case err != nil, got == nil, got.ID != id, !strings.EqualFold(got.Hostname, t.machine.Node):
		return Instance{}, false, nil
	}
	return asInstance(*got), true, nil
}
