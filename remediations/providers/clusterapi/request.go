package clusterapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/providers/kubeapi"
)

// markedBy begins the message in the conditions of a request. By it, Drydock recognises its own
// conditions.
const markedBy = "Drydock asks for a replacement, attempt "

const fieldManager = "drydock"

// asking puts the Machine's UID into the request, so it never changes a new Machine of the same
// name.
func asking(w way, m *machine, attempt string, now time.Time) kubeapi.Request {
	r := kubeapi.Request{Method: http.MethodPatch, Path: "machines/" + m.Name, Query: url.Values{"fieldManager": {fieldManager}}}
	switch w {
	case remove:
		return kubeapi.Deletion(r.Path, m.UID)
	case mark:
		r.Path, r.ContentType, r.Body = r.Path+"/status", "application/json-patch+json", marking(m, attempt, now)
	case annotate:
		r.ContentType = "application/merge-patch+json"
		about := map[string]any{"uid": m.UID, "labels": map[string]any{keptLabel: "true"}, "annotations": map[string]any{remediateKey: attempt}}
		if m.kept() { // otherwise the MachineHealthCheck would ignore the request
			about["annotations"] = map[string]any{remediateKey: attempt, skipKey: nil}
		}
		r.Body = map[string]any{"metadata": about}
	}
	return r
}

type change struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// marking keeps all other conditions. Only a JSON patch can check the Machine's UID, with an
// operation "test": in an apply or a merge patch of the status, the API server accepts no UID as a
// precondition.
func marking(m *machine, attempt string, now time.Time) []change {
	out := []change{{"test", "/metadata/uid", m.UID}}
	if len(m.Status.Conditions) == 0 {
		out = append(out, change{"add", "/status/conditions", []any{}})
	}
	for kind, reason := range map[string]string{healthy: "UnhealthyNode", ownerRemedied: "WaitingForRemediation"} {
		of := metav1.Condition{
			Type: kind, Status: metav1.ConditionFalse, Reason: reason, LastTransitionTime: metav1.NewTime(now),
			Message: markedBy + attempt,
		}
		i := slices.IndexFunc(m.Status.Conditions, func(c metav1.Condition) bool { return c.Type == kind })
		if i < 0 {
			out = append(out, change{"add", "/status/conditions/-", of})
			continue
		}
		at := fmt.Sprintf("/status/conditions/%d", i)
		out = append(out, change{"test", at + "/type", kind}, change{"replace", at, of})
	}
	return out
}

// The API server refuses unmarking's patch if the Machine has changed since it was read.
func unmarking(m *machine) []change {
	out := []change{{"test", "/metadata/uid", m.UID}, {"test", "/metadata/resourceVersion", m.ResourceVersion}}
	for i, of := range slices.Backward(m.Status.Conditions) {
		if of.Type == healthy || of.Type == ownerRemedied {
			out = append(out, change{"remove", fmt.Sprintf("/status/conditions/%d", i), nil})
		}
	}
	return out
}

// giveUpPods lets Cluster API skip a second drain: a pod that may not be evicted could block the
// replacement forever. The annotation needs its own write, because neither a DELETE nor a write to
// the status can set one. If the request has no effect, Share.GiveBack removes it.
func (c *Client) giveUpPods(ctx context.Context, m *machine, attempt string) error {
	if m.has(noDrainKey) {
		return nil
	}
	marks := map[string]any{"labels": map[string]any{keptLabel: "true"}, "annotations": map[string]any{noDrainKey: attempt}}
	if err := c.change(ctx, m, marks, "preventing Cluster API from draining the Node of %s again"); err != nil {
		return err
	}
	metav1.SetMetaDataAnnotation(&m.ObjectMeta, noDrainKey, attempt)
	return nil
}

// ask sends the request at most once.
func (c *Client) ask(ctx context.Context, s *sight, attempt string, mayStill func() error) (remediations.CallOutcome, error) {
	r := asking(s.way, s.machine, attempt, time.Now())
	return c.Change(ctx, r, mayStill, func(body []byte) bool { return granted(s, attempt, body) })
}

func granted(s *sight, attempt string, body []byte) bool {
	var shown machine
	if s.way == remove {
		return kubeapi.Deleted(body, "Machine", s.machine.UID, &shown)
	}
	if json.Unmarshal(body, &shown) != nil || shown.Kind != "Machine" || shown.UID != s.machine.UID {
		return false
	}
	if s.way == mark {
		return shown.Status.False(ownerRemedied)
	}
	return shown.Annotations[remediateKey] == attempt
}
