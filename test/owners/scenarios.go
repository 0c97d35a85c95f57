package owners

import (
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/soak"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/providers/redfish/sim"
)

// ReplacedWhereNoRebootHelps tests the whole chain for a machine that no reboot cures. Its BMC
// resets it, but it comes up with the same fault. Then its owner drains and replaces it. In the end
// the node's pod runs again, on the node of the new machine.
func (e *Env) ReplacedWhereNoRebootHelps(app string) {
	e.T.Helper()
	old := e.Node(e.Nodes[0])
	object := e.Object(old.Name)
	bmc, err := e.Lab.StartBMC(e.T.Context(), old.Name, lab.BMCOptions{Ill: true})
	require.NoError(e.T, err)
	e.T.Cleanup(bmc.Close)
	bmc.Config["serialNumber"] = old.Name // not every owner's Node shows a system UUID
	e.Run(lab.DrydockOptions{Config: m{"providers": m{"redfish": m{"bmcs": []any{bmc.Config}}}}},
		m{"step": "reboot", "wait": "10s", "attempts": 1}, e.step(Proven))
	e.EndEvicted(app, old.Name)

	e.Fail(old.Name)
	entry, fresh := e.Ended()

	require.Equal(e.T, []sim.Done{{Serial: old.Name, Kind: "ForceRestart"}}, bmc.Resets())
	require.Equal(e.T, remediations.OutcomeRecovered, entry.Outcome, entry.Why)
	require.Equal(e.T, []string{"reboot:1", "replace:1"}, entry.Steps.Texts())
	e.RequireReplaced(old, fresh, object, entry.ID+"-1-1")
	e.Bind(app, fresh.Name)
}

// Replaced tests the chain without a pod, and returns the new Node.
func (e *Env) Replaced() *corev1.Node {
	e.T.Helper()
	e.Run(lab.DrydockOptions{}, e.step(Proven))
	old := e.Node(e.Nodes[0])
	object := e.Object(old.Name)

	e.Fail(old.Name)
	entry, fresh := e.Ended()

	e.requireRecovered(entry, old, fresh, object, 1)
	return fresh
}

// AFaultLeavesOneRequest tests that the request for a replacement is made exactly once, whatever
// happens to it. Each fault has machines of its own.
func AFaultLeavesOneRequest(t *testing.T, newEnv func(t *testing.T, name string) *Env) {
	t.Helper()
	for name, fault := range soak.OneOf(t, map[string]func(*Env){
		"lost": (*Env).lost, "killed": (*Env).killed, "unsent": (*Env).unsent, "refused": (*Env).refused,
	}) {
		t.Run(name, func(t *testing.T) { fault(newEnv(t, name)) })
	}
}

// A request without an answer counts as made, and is not repeated.
func (e *Env) lost() {
	e.T.Helper()
	_, proxy := e.Behind(e.step(Proven))
	var requests atomic.Int32
	proxy.After(func(r *http.Response) lab.Verdict {
		if !e.Requests(r.Request) {
			return lab.Pass
		}
		requests.Add(1)
		return lab.Reset
	})
	old := e.Node(e.Nodes[0])
	object := e.Object(old.Name)

	e.Fail(old.Name)
	entry, fresh := e.Ended()

	require.EqualValues(e.T, 1, requests.Load())
	e.requireRecovered(entry, old, fresh, object, 1)
}

// Drydock ends after the request was carried out and before its answer. The next Drydock finds out
// that it was, even if the Node is gone already.
func (e *Env) killed() {
	e.T.Helper()
	d, proxy := e.Behind(e.step(Proven))
	proxy.After(func(r *http.Response) lab.Verdict {
		if !e.Requests(r.Request) {
			return lab.Pass
		}
		d.Kill()
		return lab.Reset
	})
	old := e.Node(e.Nodes[0])
	object := e.Object(old.Name)

	e.Fail(old.Name)
	lab.AwaitEnd(e.T, d.Process)
	proxy.After(nil)
	e.Eventually(func() bool { return e.gone(old.Name) }, "the machine is replaced without Drydock")
	require.NoError(e.T, e.Lab.Restart(e.T.Context(), d))
	entry, fresh := e.Ended()

	e.requireRecovered(entry, old, fresh, object, 1)
}

// Drydock ends between the intent and the request. That attempt is never made. The next attempt is
// made once.
func (e *Env) unsent() {
	e.T.Helper()
	d, proxy := e.Behind(e.step(5*time.Second), e.step(Proven))
	proxy.Before(func(r *http.Request) lab.Verdict {
		if !e.Requests(r) {
			return lab.Pass
		}
		d.Kill()
		return lab.Reset
	})
	old := e.Node(e.Nodes[0])
	object := e.Object(old.Name)

	e.Fail(old.Name)
	lab.AwaitEnd(e.T, d.Process)
	proxy.Before(nil)
	r := remediations.ReadJournal(e.Node(old.Name)).Record
	require.NotNil(e.T, r, "the intent is on the Node")
	require.Equal(e.T, remediations.PhaseActing, r.Phase)
	require.Empty(e.T, e.Seen())
	require.NoError(e.T, e.Lab.Restart(e.T.Context(), d))
	entry, fresh := e.Ended()

	e.requireRecovered(entry, old, fresh, object, 2)
}

// The API server answers that Drydock must wait. Nothing was done, so the attempt is not spent, and
// is made again.
func (e *Env) refused() {
	e.T.Helper()
	_, proxy := e.Behind(e.step(Proven))
	var requests atomic.Int32
	proxy.Before(func(r *http.Request) lab.Verdict {
		if e.Requests(r) && requests.Add(1) == 1 {
			require.Empty(e.T, e.Seen())
			return lab.TooManyRequests
		}
		return lab.Pass
	})
	old := e.Node(e.Nodes[0])
	object := e.Object(old.Name)

	e.Fail(old.Name)
	entry, fresh := e.Ended()

	require.EqualValues(e.T, 2, requests.Load())
	e.Eventually(func() bool {
		said, err := e.Lab.Client().EventsV1().Events("").List(e.T.Context(), metav1.ListOptions{FieldSelector: "regarding.name=" + old.Name})
		require.NoError(e.T, err)
		return slices.ContainsFunc(said.Items, func(event eventsv1.Event) bool {
			return strings.HasSuffix(event.Action, entry.ID) && strings.Contains(event.Note, "nothing was done")
		})
	}, "people are told that the first request was refused")
	e.requireRecovered(entry, old, fresh, object, 1)
}

// The repair needed this many replacements, with one attempt each, and is proven.
func (e *Env) requireRecovered(entry remediations.Entry, old, fresh *corev1.Node, object string, steps int) {
	e.T.Helper()
	require.Equal(e.T, remediations.OutcomeRecovered, entry.Outcome, entry.Why)
	require.Equal(e.T, slices.Repeat([]string{fmt.Sprint(e.step(0)["step"], ":1")}, steps), entry.Steps.Texts())
	e.RequireReplaced(old, fresh, object, fmt.Sprintf("%s-%d-1", entry.ID, steps-1))
}

// RequireReplaced asserts that the Node and its machine were replaced, and that only this attempt
// requested it, for only this machine.
func (e *Env) RequireReplaced(old, fresh *corev1.Node, object, attempt string) {
	e.T.Helper()
	t := e.T
	require.NotEqual(t, old.UID, fresh.UID)
	require.NotEqual(t, old.Spec.ProviderID, fresh.Spec.ProviderID)
	require.NotContains(t, e.Nodes, fresh.Name)
	require.True(t, Well(fresh))
	require.False(t, fresh.Spec.Unschedulable)
	require.True(t, e.gone(old.Name))
	e.Eventually(func() bool { return len(e.Seen()[object]) >= len(e.Asked(attempt)) }, "all that was asked is seen")
	require.Equal(t, []string{object}, slices.Collect(maps.Keys(e.Seen())), "no other machine was asked for or deleted")
	seen := e.Seen()[object]
	for i := range seen {
		seen[i] = FirstNamed(seen[i])
	}
	require.ElementsMatch(t, e.Asked(attempt), seen)
}

// The longer name of an attempt that was given back and made again (remediations.NextIntentID).
var again = regexp.MustCompile(`\b([0-9a-z]+-[0-9]+-[0-9]+)-[0-9a-z]+`)

// FirstNamed replaces the names of attempts in the text with their first names. On a busy machine
// an attempt may be given back, and the next one then has a longer name.
func FirstNamed(said string) string { return again.ReplaceAllString(said, "$1") }
