package plugin

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/wait"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/remediations"
)

// These are the rights of the people in the tests.
const (
	onlyNodes = `[{apiGroups: [""], resources: [nodes], verbs: [get, list, patch]}]`
	nothing   = `[]`
	readOnly  = `[{apiGroups: [""], resources: [nodes], verbs: [get, list]}]`
)

// A user who may patch nodes needs no other right for any of the annotations.
func TestEachWordIsOnTheNodeAfterwards(t *testing.T) {
	admin := newTerminal(t)
	s := admin.as("operator", onlyNodes, "")
	for _, c := range []struct {
		node  string
		phase remediations.Phase
		line  string
		// key and value are what the Node has afterwards. An empty value means that the Node does
		// not have the key.
		key, value string
	}{
		{"node-0", "", "pause node-0 --why disk", remediations.PauseKey, "true disk"},
		{"node-0", "", "resume node-0", remediations.PauseKey, ""},
		{"node-0", "", "break-glass node-0 --why now", remediations.BreakGlassKey, "now"},
		{"node-0", "", "resume node-0", remediations.BreakGlassKey, ""},
		{"node-1", "", "repair node-1 --with reboot", remediations.RequestKey, "remediation/reboot"},
		{"node-2", "", "repair node-2 --policy node-not-ready", remediations.RequestKey, "policy/node-not-ready"},
		{"node-3", remediations.PhasePending, "approve node-3", remediations.ApproveKey, "cccccc"},
		{"node-3", remediations.PhasePending, "cancel node-3 cccccc", remediations.CancelKey, "cccccc"},
		{"node-4", remediations.PhaseExhausted, "reset node-4", remediations.ResetKey, "true"},
		{"node-5", remediations.PhaseExhausted, "reset --policy node-not-ready", remediations.ResetKey, "true"},
	} {
		t.Run(c.line, func(t *testing.T) {
			if c.node == "node-5" {
				admin.settle() // otherwise another exhausted repair would be the first by name
			}
			if c.phase != "" {
				admin.record(c.node, "cccccc", c.phase)
			}
			before := admin.node(c.node)
			code, stdout, stderr := s.typed(c.line)
			require.Equal(t, 0, code, stderr)
			require.Empty(t, stderr)
			require.Regexp(t, `\A[^\n]+\n\z`, stdout, "one sentence")

			after := admin.node(c.node)
			value, there := after.Annotations[c.key]
			require.Equal(t, c.value, value)
			require.Equal(t, c.value != "", there)
			require.Equal(t, before.Spec, after.Spec)
			require.Equal(t, before.Labels, after.Labels)
			require.Equal(t, without(before.Annotations, c.key), without(after.Annotations, c.key), "nothing else was written")
			if there {
				require.Contains(t, managers(t, admin, c.node, c.key), "kubectl-drydock")
			}
		})
	}
}

func without(annotations map[string]string, key string) map[string]string {
	out := map[string]string{}
	maps.Copy(out, annotations)
	delete(out, key)
	return out
}

// managers returns the field managers that own the annotation.
func managers(t *testing.T, s *terminal, node, key string) (out []string) {
	for _, f := range s.node(node).ManagedFields {
		var fields struct {
			Metadata struct {
				Annotations map[string]any `json:"f:annotations"`
			} `json:"f:metadata"`
		}
		require.NoError(t, json.Unmarshal(f.FieldsV1.GetRawBytes(), &fields))
		if _, ok := fields.Metadata.Annotations["f:"+key]; ok {
			out = append(out, f.Manager)
		}
	}
	return out
}

func TestAPauseEndsWhenItShould(t *testing.T) {
	s := newTerminal(t)
	code, stdout, stderr := s.run("pause", "node-0", "node-1", "--for", "2h", "--why", "disk swap")
	require.Equal(t, 0, code, stderr)
	for _, node := range []string{"node-0", "node-1"} {
		p, err := remediations.ParsePause(s.node(node).Annotations[remediations.PauseKey])
		require.NoError(t, err)
		require.Equal(t, "disk swap", p.Why)
		require.WithinDuration(t, time.Now().Add(2*time.Hour), p.Until, time.Minute)
		require.Contains(t, stdout, node+" is paused until "+p.Until.Format(time.RFC3339))
	}
}

func TestAMissingRightToPatchNodesIsNamedInASentence(t *testing.T) {
	admin := newTerminal(t)
	admin.record("node-3", "cccccc", remediations.PhasePending)
	admin.record("node-4", "dddddd", remediations.PhaseExhausted)
	s := admin.as("reader", readOnly, "")
	for _, line := range []string{
		"pause node-0", "break-glass node-0 --why now", "repair node-1 --with reboot", "approve node-3", "cancel node-3",
		"reset node-4", "reset --policy node-not-ready",
	} {
		code, stdout, stderr := s.typed(line)
		require.Equal(t, 1, code, line)
		require.Empty(t, stdout)
		require.Regexp(t, `\Aerror: [^\n]+ was refused: nodes "node-\d" is forbidden: User "system:serviceaccount:people:reader" cannot patch resource "nodes"[^\n]*\n\z`, stderr)
	}
	code, stdout, stderr := s.typed("status")
	require.Equal(t, 0, code, stderr)
	require.Contains(t, stdout, "node-3", "reading needs no right to write")
}

// The plugin reads the record and then writes an annotation that depends on it. In between, Drydock
// ends that repair and begins another one.
func TestARecordThatChangedMeanwhileIsNotCancelled(t *testing.T) {
	admin := newTerminal(t)
	admin.record("node-3", "cccccc", remediations.PhaseVerifying)
	proxy, err := admin.lab.NewProxy()
	require.NoError(t, err)
	var patches atomic.Int32
	proxy.Before(func(r *http.Request) lab.Verdict {
		if r.Method == http.MethodPatch && patches.Add(1) == 1 {
			admin.record("node-3", "dddddd", remediations.PhasePending)
		}
		return lab.Pass
	})
	code, stdout, stderr := admin.as("operator", onlyNodes, proxy.URL()).typed("cancel node-3")
	require.Equal(t, 1, code)
	require.Empty(t, stdout)
	require.Equal(t, "error: Cluster lab ("+proxy.URL()+"): nothing was written, because node-3 has changed: the command would now concern dddddd instead of cccccc; check `kubectl drydock --context lab status` and try again\n", stderr)
	require.NotContains(t, admin.node("node-3").Annotations, remediations.CancelKey)

	// The control: the same repair, but in between only the kubelet has written on the node.
	patches.Store(0)
	proxy.Before(func(r *http.Request) lab.Verdict {
		if r.Method == http.MethodPatch && patches.Add(1) == 1 {
			admin.patch("node-3", map[string]any{"example.com/heartbeat": time.Now().String()}, nil)
		}
		return lab.Pass
	})
	code, _, stderr = admin.as("operator", onlyNodes, proxy.URL()).typed("cancel node-3")
	require.Equal(t, 0, code, stderr)
	require.Equal(t, "dddddd", admin.node("node-3").Annotations[remediations.CancelKey])
	require.Equal(t, int32(2), patches.Load())
}

func TestARefusalOfTheClusterOrOfTheNodeIsOneSentence(t *testing.T) {
	s := newTerminal(t)
	in := "error: Cluster lab (" + s.lab.APIServerURL() + "): " // a write names the cluster that refused it
	for line, want := range map[string]string{
		"pause node-99":                 in + `there is no node "node-99" in this cluster`,
		"history node-99":               `error: there is no node "node-99" in this cluster`,
		"cancel node-0":                 in + "there is no repair on node-0",
		"reset node-0":                  in + "there is nothing to reset on node-0: it has no exhausted repair and no unreadable record",
		"repair node-0 --with prayer":   `error: there is no remediation "prayer" of a node; there are `,
		"status --server 127.0.0.1:1":   "error: the cluster cannot be reached at 127.0.0.1:1: ",
		"status --context nowhere":      `error: finding the cluster: context "nowhere" does not exist`,
		"status --kubeconfig /nowhere":  "error: finding the cluster: stat /nowhere: no such file or directory",
		"status -n default --ledger no": "error: no Drydock was found: there is no ConfigMap no in namespace default, and no node has the label drydock.dev/phase; check that `drydock run` runs",
	} {
		code, stdout, stderr := s.typed(line)
		require.Equal(t, 1, code, "%s: %s", line, stderr)
		require.Empty(t, stdout)
		require.True(t, strings.HasPrefix(stderr, want), "%s: %s", line, stderr)
		require.Equal(t, 1, strings.Count(stderr, "\n"), stderr)
	}
	code, _, stderr := s.typed("pause")
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "Run 'kubectl drydock --help'")
}

// The person sees admission's answer: a denial as an error, and a warning as kubectl prints it.
func TestAdmissionsWordsReachThePerson(t *testing.T) {
	s := newTerminal(t)
	// These objects stay when the test has ended. They are about a node that no other test uses.
	policy := func(name, action, message string) string {
		return `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: ` + name + `}
spec:
  failurePolicy: Fail
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [UPDATE], resources: [nodes]}]}
  validations: [{expression: "object.metadata.name != 'node-5' || !has(object.metadata.annotations) || !('drydock.dev/` + name + `' in object.metadata.annotations)", message: "` + message + `"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: ` + name + `}
spec: {policyName: ` + name + `, validationActions: [` + action + `]}
---`
	}
	require.NoError(t, s.lab.Apply(t.Context(), []byte(policy("request", "Deny", "a request waits on node-5 already")+policy("pause", "Warn", "the node is leaving anyway"))))
	// A policy is in force only some time after the API server has accepted it.
	require.NoError(t, wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, lab.Patience, true, func(context.Context) (bool, error) {
		s.settle()
		_, _, denied := s.typed("repair node-5 --with reboot")
		_, _, warned := s.typed("pause node-5")
		return denied != "" && warned != "", nil
	}))
	s.settle()
	code, stdout, stderr := s.typed("repair node-5 --with reboot")
	require.Equal(t, 1, code)
	require.Empty(t, stdout)
	require.Equal(t, "error: Cluster lab ("+s.lab.APIServerURL()+"): requesting a repair of node-5 was refused: nodes \"node-5\" is forbidden: ValidatingAdmissionPolicy 'request' with binding 'request' denied request: a request waits on node-5 already\n", stderr)

	code, stdout, stderr = s.typed("pause node-5")
	require.Equal(t, 0, code)
	require.Contains(t, stdout, "node-5 is paused")
	require.Equal(t, "Warning: Validation failed for ValidatingAdmissionPolicy 'pause' with binding 'pause': the node is leaving anyway\n", stderr)
}
