package metal3

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/providers/kubeapi"
)

// Ender removes Drydock's annotations from hosts whose attempts have ended. It works from the hosts
// that exist, so it also finds what was left by a crash.
type Ender struct {
	*Client
	// Registry has the remediations that records may name.
	Registry remediations.Registry
}

// End goes once through the hosts that Drydock has written to. It withdraws a reboot that the
// operator has not begun. What another client has written, or changed since, stays. Its error joins
// those of all hosts.
func (e Ender) End(ctx context.Context) error {
	all, err := kubeapi.List[host](ctx, e.Client.Client, "baremetalhosts", "BareMetalHost", url.Values{"labelSelector": {madeLabel + "=" + madeBy}})
	if err != nil {
		return e.Told(err, "listing the BareMetalHosts that Drydock has written to: %s")
	}
	var out []error
	for i := range all {
		if err := e.end(ctx, &all[i]); err != nil {
			out = append(out, e.Told(err, fmt.Sprintf("removing ended attempts from %s: %%s", all[i].name())))
		}
	}
	return errors.Join(out...)
}

func (e Ender) end(ctx context.Context, h *host) error {
	if !h.ours(attemptKey) {
		return nil // another client's label
	}
	over, _, err := e.Over(ctx, e.Registry, h.Annotations[nodeKey], h.Annotations[attemptKey])
	if err != nil || !over {
		return err
	}
	marks := map[string]any{attemptKey: nil, nodeKey: nil}
	if h.ours(rebootKey) {
		marks[rebootKey] = nil
	}
	r := changing(h, marks, nil)
	switch a := e.Send(ctx, r); {
	case a.Err == nil && (a.Status == http.StatusOK || a.Own != nil && (a.Status == http.StatusNotFound || a.Status == http.StatusConflict)):
		return nil // a conflict is tried again at the next pass
	default:
		return e.Explain(r, a)
	}
}
