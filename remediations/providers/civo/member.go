package civo

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/civo/civogo"
)

// memberWithin limits the request for one instance. If the request fails, the whole list is read,
// and both must fit into the time limit for sending the call.
const memberWithin = 3 * time.Second

// The caller must hold c.turn.
func (c *Client) learn(listed []civogo.Instance) {
	c.members = make(map[string]struct{}, len(listed))
	for _, in := range listed {
		c.members[in.ID] = struct{}{}
	}
}

// member looks up one instance by its ID. This is cheaper than the list of all instances, which
// grows with the cluster. Civo returns any instance of the account by ID, also one of another
// cluster. So member requests only an ID that was in the cluster's list before. This is enough,
// because Civo never reuses an ID, and an instance never moves to another cluster.
//
// found is true only if the answer has exactly that ID, and the Node's name as hostname. If found
// is false and err is nil, the caller must read the list, even if Civo answered "not found". err is
// set only if Civo refuses the API key or asks clients to wait. Then the caller must not read the
// list.
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
