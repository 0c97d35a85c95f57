package civo

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/civo/civogo"
)

// memberWithin bounds the request for one instance. If it gets no answer, there is still time to
// read the list before the call must leave.
const memberWithin = 3 * time.Second

// learn remembers which instances the cluster has, for the holder of the turn.
func (c *Client) learn(listed []civogo.Instance) {
	c.members = make(map[string]struct{}, len(listed))
	for _, in := range listed {
		c.members[in.ID] = struct{}{}
	}
}

// member looks one instance up by its ID instead of in the list of all instances, which grows with
// the cluster. By ID Civo shows every instance of the account. So member requests only IDs that the
// cluster's own list has contained: Civo never reuses an ID, and no instance moves to another
// cluster.
//
// Only an answer with exactly that ID and that hostname counts. After every other answer, a "not
// found" included, the list decides. The list is not read if Civo refuses the key or asks clients
// to wait.
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
