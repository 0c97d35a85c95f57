package metal3

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/providers/kit"
	"drydock.dev/drydock/remediations/providers/kubeapi"
)

// Rebooter is the remediation reboot: the baremetal-operator switches the host off and on again.
type Rebooter struct{ *Client }

// Survey finds the host, and names everything that forbids its reboot.
func (c Rebooter) Survey(ctx context.Context, m engine.Machine) remediations.Survey {
	if _, err := c.look(ctx, m); err != nil {
		return c.Told(err, fmt.Sprintf("the BareMetalHost of node %q: %%s", m.Node)).Survey()
	}
	return remediations.Survey{}
}

// Act implements engine.Actuator.
func (c Rebooter) Act(ctx context.Context, m engine.Machine, mayStill func() error) (remediations.CallOutcome, error) {
	outcome, err := c.act(ctx, m, mayStill)
	return c.Ended(outcome, err, fmt.Sprintf("rebooting node %q through its BareMetalHost", m.Node), "the annotation may have been written")
}

func (c Rebooter) act(ctx context.Context, m engine.Machine, mayStill func() error) (remediations.CallOutcome, error) {
	if m.Attempt == "" {
		return remediations.CallRefused, kit.Refuse(kit.Machine, "the attempt has no ID, so the annotation's owner would be unknown")
	}
	h, err := c.look(ctx, m)
	if err != nil {
		return remediations.CallRefused, err
	}
	mode := "hard"
	if m.Soft {
		mode = "soft"
	}
	r := changing(h, map[string]any{rebootKey: fmt.Sprintf(`{"mode":%q}`, mode), attemptKey: m.Attempt, nodeKey: m.Node}, madeBy)
	return c.Change(ctx, r, mayStill, func(body []byte) bool {
		var shown host
		return json.Unmarshal(body, &shown) == nil && shown.Kind == "BareMetalHost" && shown.UID == h.UID && shown.Annotations[attemptKey] == m.Attempt
	})
}

// changing changes the host as it was read: not another one that has its name now, and not a later
// version.
func changing(h *host, annotations map[string]any, label any) kubeapi.Request {
	return kubeapi.Request{
		Method: http.MethodPatch, Path: "baremetalhosts/" + h.Name, Query: url.Values{"fieldManager": {remediations.FieldManager}}, ContentType: "application/merge-patch+json",
		Body: map[string]any{"metadata": map[string]any{
			"uid": h.UID, "resourceVersion": h.ResourceVersion, "annotations": annotations, "labels": map[string]any{madeLabel: label},
		}},
	}
}
