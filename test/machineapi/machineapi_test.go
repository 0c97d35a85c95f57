// Package machineapi tests the real Drydock in the lab with the step external-replace, and with the
// rights that the chart gives for it. A simulation plays OpenShift's Machine API and
// MachineDeletionRemediation according to their contracts.
package machineapi

import (
	"bytes"
	"context"
	"io"
	"maps"
	"math"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/test/owners"
)

// m is a part of a configuration file.
type m = map[string]any

// namespace has the template and the remediation objects.
const namespace = "remediators"

func TestMain(t *testing.M) { lab.Main(t, owners.Options()) }

var (
	once  sync.Once
	api   *lab.MachineAPI
	token string
	// replacing are the fields of a step that uses MachineDeletionRemediation.
	replacing = m{"step": "external-replace", "template": m{
		"apiVersion": lab.MachineDeletions.GroupVersion().String(), "kind": remediations.MachineDeletion, "namespace": namespace, "name": "own",
	}}
)

func start(t *testing.T, l *lab.Lab, providers m) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	var err error
	api, err = l.StartMachineAPI(ctx)
	require.NoError(t, err)
	_, err = l.Client().CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	require.NoError(t, err)
	templates := lab.MachineDeletions.GroupVersion().WithResource("machinedeletionremediationtemplates")
	_, err = api.Dynamic.Resource(templates).Namespace(namespace).Create(ctx, &unstructured.Unstructured{Object: m{
		"apiVersion": templates.GroupVersion().String(), "kind": remediations.MachineDeletion, "metadata": m{"name": "own"}, "spec": m{"template": m{"spec": m{}}},
	}}, metav1.CreateOptions{})
	require.NoError(t, err)
	step := owners.Step(owners.Proven)
	maps.Copy(step, replacing)
	token, err = l.PrepareDrydockWith(ctx, m{
		"admission": m{"webhook": m{"enabled": false}}, // the policy alone
		"config": m{"mode": "enforce", "providers": providers, "policies": []any{m{
			"name": "node-not-ready", "match": []any{`remediation="node-not-ready"`}, "witness": []any{m{"ready": false}}, "plan": []any{step},
		}}},
	})
	require.NoError(t, err)
}

// newEnv creates a MachineSet with two Machines.
func newEnv(t *testing.T, set string) *owners.Env {
	t.Helper()
	l, providers := lab.Shared(t), m{"external": m{"timeout": "1m"}}
	once.Do(func() { start(t, l, providers) })
	require.NotEmpty(t, token, "Drydock was not prepared")
	nodes, err := api.AddMachineSet(t.Context(), set, 2)
	require.NoError(t, err)
	machines := map[string]string{}
	for _, node := range nodes {
		uid, err := api.MachineOf(t.Context(), node)
		require.NoError(t, err)
		machines[node] = string(uid)
	}
	deleted := owners.Watch(t, api.Dynamic, lab.OpenShiftMachines, "", "", func(one *unstructured.Unstructured) []string {
		if one.GetDeletionTimestamp() == nil {
			return nil
		}
		return []string{"deleted"}
	})
	objects := owners.Watch(t, api.Dynamic, lab.MachineDeletions, namespace, "", func(one *unstructured.Unstructured) []string {
		return []string{one.GetName() + " " + one.GetAnnotations()["drydock.dev/attempt"]}
	})
	return &owners.Env{
		T: t, Lab: l, Token: token, Providers: providers, Replacing: replacing, Nodes: nodes,
		Mine:   func(n *corev1.Node) bool { return n.Labels[lab.MachineSetLabel] == set },
		Object: func(node string) string { return machines[node] },
		Requests: func(r *http.Request) bool {
			return r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/machinedeletionremediations")
		},
		Asked: func(attempt string) []string { return []string{"deleted", "object of " + attempt} },
		// Seen contains the deletion of a Machine, and each remediation object about its Node, also
		// one that had no effect.
		Seen: func() map[string][]string {
			seen := map[string][]string{}
			for uid, what := range deleted() {
				for _, mine := range machines {
					if uid == mine {
						seen[uid] = what
					}
				}
			}
			for _, said := range objects() {
				node, attempt, _ := strings.Cut(said[0], " ")
				if of, mine := machines[node]; mine {
					seen[of] = append(seen[of], "object of "+attempt)
				}
			}
			return seen
		},
	}
}

// The whole chain: alert, witness, intent, the remediation object, the deletion of the Machine, a
// new Machine, and the proof by it. The object is deleted at the end.
func TestARemediatorReplacesTheMachine(t *testing.T) {
	e := newEnv(t, "whole")
	e.Replaced()
	e.Eventually(func() bool {
		left, err := api.Dynamic.Resource(lab.MachineDeletions).Namespace(namespace).List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		return len(left.Items) == 0
	}, "the object is deleted")
}

func TestAFaultLeavesOneRequest(t *testing.T) { owners.AFaultLeavesOneRequest(t, newEnv) }

// The API server fails once between the intent and the request, when Drydock reads what it needs
// for the request. That costs no attempt: the plan has only one attempt, and it replaces the
// Machine.
func TestAnAPIServerThatFailsForAMomentCostsNoAttempt(t *testing.T) {
	e := newEnv(t, "moment")
	reads, requests := behindAFault(e, 1)
	e.Fail(e.Nodes[0])
	entry, _ := e.Ended()

	require.Equal(t, remediations.OutcomeRecovered, entry.Outcome, entry.Why)
	require.Equal(t, []string{"external-replace:1"}, entry.Steps.Texts())
	require.Greater(t, reads.Load(), int32(1), "what failed was read again")
	require.EqualValues(t, 1, requests.Load())
}

// The API server fails for longer than the intent is valid. The attempt is given back, and the hold
// says what could not be read.
func TestAnAPIServerThatFailsForLongerCostsNoAttempt(t *testing.T) {
	e := newEnv(t, "longer")
	reads, requests := behindAFault(e, math.MaxInt32)
	e.Fail(e.Nodes[0])
	e.Held(e.Nodes[0], func(message string) bool {
		return strings.Contains(message, "external could not read what it needs for the step external-replace") && strings.Contains(message, "nothing was done") &&
			strings.Contains(message, "machinesets")
	})

	r := remediations.ReadJournal(e.Node(e.Nodes[0])).Record
	require.Equal(t, remediations.ReasonCallWithheld, r.Hold.Reason)
	require.Empty(t, r.Done, "the plan's attempt is still there")
	e.Eventually(func() bool { return reads.Load() > 1 }, "what failed is read again")
	require.Zero(t, requests.Load())
	require.Empty(t, e.Seen())
}

// behindAFault starts Drydock behind an API server that fails this number of reads of the Machine's
// owner after the intent.
func behindAFault(e *owners.Env, fails int32) (reads, requests *atomic.Int32) {
	step := owners.Step(owners.Proven)
	maps.Copy(step, replacing)
	_, proxy := e.Behind(step)
	var acting atomic.Bool
	reads, requests = new(atomic.Int32), new(atomic.Int32)
	proxy.Before(func(r *http.Request) lab.Verdict {
		switch {
		case r.Method != http.MethodGet && strings.HasSuffix(r.URL.Path, "/nodes/"+e.Nodes[0]):
			body, err := io.ReadAll(r.Body)
			require.NoError(e.T, err)
			r.Body = io.NopCloser(bytes.NewReader(body))
			if bytes.Contains(body, []byte(remediations.PhaseActing)) {
				acting.Store(true)
			}
		case r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/machinesets/") && acting.Load() && requests.Load() == 0:
			if reads.Add(1) <= fails {
				return lab.InternalError
			}
		case e.Requests(r):
			requests.Add(1)
		}
		return lab.Pass
	})
	return reads, requests
}
