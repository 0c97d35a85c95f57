package civo

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/civo/civogo"
)

// memberWithin bounds the question about one instance, so that the list, which
// answers whatever it does not, still has its time before the call must go out.
const memberWithin = 3 * time.Second

// learn remembers which instances the cluster has, for the holder of the turn.
func (c *Client) learn(listed []civogo.Instance) {
	c.members = make(map[string]struct{}, len(listed))
	for _, in := range listed {
		c.members[in.ID] = struct{}{}
	}
}

// member looks one instance up by its ID instead of in the list of all, which
// grows with the cluster. By its ID Civo shows every instance of the account, so
// only one that the cluster's own list has had is asked for: an ID is never given
// twice, and no instance moves from one cluster to another.
//
// Only a yes counts, of that ID and that hostname. Whatever else comes, a no
// included, is for the list to say. The list is not asked where Civo refuses the
// key or asks to be left alone.
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
