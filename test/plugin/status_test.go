package plugin

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
)

// printed are the fields of -o json and -o yaml that scripts may use.
type printed struct {
	Kind   string `json:"kind"`
	Ledger struct {
		Namespace string        `json:"namespace"`
		Problem   string        `json:"problem"`
		Slots     []ledger.Slot `json:"slots"`
		Status    ledger.Status `json:"status"`
	} `json:"ledger"`
	Repairs []struct {
		Node    string               `json:"node"`
		Record  *remediations.Record `json:"record"`
		Problem string               `json:"problem"`
	} `json:"repairs"`
}

func TestStatusShowsTheLedgerAndTheNodes(t *testing.T) {
	s := newTerminal(t)
	s.record("node-1", "aaaaaa", remediations.PhaseVerifying)
	s.patch("node-2", map[string]any{remediations.NodeRepairKey: "{"}, map[string]any{remediations.PhaseLabel: "Acting"})
	s.ledger(&ledger.Ledger{
		Slots:  []ledger.Slot{{Node: "node-1", Repair: "aaaaaa", Attempt: "aaaaaa-0-1", Zone: "a"}},
		Status: ledger.Status{Mode: remediations.ModeEnforce, Blind: "nobody shows the Watchdog", Limits: map[string]string{"concurrent": "1"}},
	})
	for _, args := range [][]string{{"status"}, {"status", "-o", "wide"}} {
		code, stdout, stderr := s.run(args...)
		require.Equal(t, 0, code, stderr)
		require.Contains(t, stdout, "nobody shows the Watchdog")
		require.Contains(t, stdout, "cluster 1 of 1 (node-1), zone a 1")
		require.Regexp(t, `node-1 +aaaaaa +node-not-ready +Verifying +reboot:1`, stdout)
		require.Regexp(t, `node-2 +- +- +Malformed`, stdout)
	}
	for format, parse := range map[string]func(string, any) error{
		"json": func(text string, into any) error { return json.Unmarshal([]byte(text), into) },
		"yaml": func(text string, into any) error { return yaml.Unmarshal([]byte(text), into) },
	} {
		code, stdout, stderr := s.run("status", "-o", format)
		require.Equal(t, 0, code, stderr)
		var p printed
		require.NoError(t, parse(stdout, &p))
		require.Equal(t, "Status", p.Kind)
		require.Equal(t, lab.Namespace, p.Ledger.Namespace)
		require.Equal(t, "node-1", p.Ledger.Slots[0].Node)
		require.Len(t, p.Repairs, 2)
		require.Contains(t, p.Repairs[0].Problem, "the record is not JSON")
		require.Equal(t, remediations.PhaseVerifying, p.Repairs[1].Record.Phase)
	}
}

func TestHistoryIsRead(t *testing.T) {
	s := newTerminal(t)
	at := time.Now().UTC().Truncate(time.Second)
	e := remediations.Entry{ID: "aaaaaa", Policy: "node-not-ready", Outcome: remediations.OutcomeRecovered, Steps: remediations.Attempts{{Name: "reboot", Number: 1}}, Began: at.Add(-time.Hour), Ended: at.Add(-50 * time.Minute), Why: "well"}
	s.patch("node-1", map[string]any{remediations.HistoryKey: remediations.EncodeHistory(nil, e)}, nil)
	code, stdout, stderr := s.typed("history node-1")
	require.Equal(t, 0, code, stderr)
	require.Regexp(t, `aaaaaa +node +node-not-ready +Recovered +reboot:1 +50m ago +10m`, stdout)

	_, stdout, _ = s.typed("history node-1 -o json")
	var h struct {
		Node    string               `json:"node"`
		Repairs []remediations.Entry `json:"repairs"`
	}
	require.NoError(t, json.Unmarshal([]byte(stdout), &h))
	require.Equal(t, "node-1", h.Node)
	require.Equal(t, []remediations.Entry{e}, h.Repairs)
}

// The person may not read the ledger. A person who may only read nodes sees the nodes, and a
// message says what is missing.
func TestRightsOnNodesAreEnoughToSeeThem(t *testing.T) {
	admin := newTerminal(t)
	admin.record("node-1", "aaaaaa", remediations.PhaseVerifying)
	code, stdout, stderr := admin.as("operator", onlyNodes, "").typed("status")
	require.Equal(t, 0, code, stderr)
	require.Contains(t, stdout, `drydock/drydock-ledger: you may not read the ledger, so only the nodes are shown: configmaps "drydock-ledger" is forbidden`)
	require.Regexp(t, `node-1 +aaaaaa`, stdout)

	// With the right to get the ledger by its name, everything is shown. A Role in Drydock's
	// namespace needs no more rights.
	s := admin.as("watcher", readOnly, "")
	require.NoError(t, admin.lab.Apply(t.Context(), []byte(`
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {namespace: drydock, name: ledger-reader}
rules: [{apiGroups: [""], resources: [configmaps], resourceNames: [drydock-ledger], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {namespace: drydock, name: ledger-reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: ledger-reader}
subjects: [{kind: ServiceAccount, namespace: people, name: watcher}]
`)))
	require.Eventually(t, func() bool {
		code, stdout, _ := s.typed("status")
		return code == 0 && strings.Contains(stdout, "Mode:     enforce")
	}, lab.Patience, 100*time.Millisecond, "the authorizer sees a new Role in a moment")
}

func TestWithoutRightsOnNodesNothingIsShown(t *testing.T) {
	admin := newTerminal(t)
	code, stdout, stderr := admin.as("stranger", nothing, "").typed("status")
	require.Equal(t, 1, code)
	require.Empty(t, stdout)
	require.Equal(t, "error: listing the nodes was refused: nodes is forbidden: User \"system:serviceaccount:people:stranger\" cannot list resource \"nodes\" in API group \"\" at the cluster scope\n", stderr)
}

func TestWatchFollowsARepair(t *testing.T) {
	s := newTerminal(t)
	cmd := s.command(t.Context(), "status", "-w")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := make(chan string, 1000)
	go func() {
		defer close(lines)
		for scan := bufio.NewScanner(out); scan.Scan(); {
			lines <- scan.Text()
		}
	}()
	var seen []string
	sees := func(pattern ...string) {
		t.Helper()
		deadline := time.After(lab.Patience)
		for {
			select {
			case l, open := <-lines:
				require.True(t, open, "it ended after %q", seen)
				seen = append(seen, l)
				missing := false
				for _, p := range pattern {
					missing = missing || !strings.Contains(l, p)
				}
				if !missing {
					return
				}
			case <-deadline:
				require.Fail(t, "not seen", "%q in %q", pattern, seen)
			}
		}
	}
	sees("TIME", "NODE", "PHASE")
	s.record("node-1", "aaaaaa", remediations.PhaseActing)
	sees("node-1", "aaaaaa", "Acting")
	s.record("node-1", "aaaaaa", remediations.PhaseVerifying)
	sees("node-1", "aaaaaa", "Verifying")
	s.ledger(&ledger.Ledger{Status: ledger.Status{Mode: remediations.ModeEnforce, Blind: "nobody shows the Watchdog"}})
	sees("Blind: yes: nobody shows the Watchdog")
	s.patch("node-1", map[string]any{
		remediations.NodeRepairKey: nil,
		remediations.HistoryKey:    remediations.EncodeHistory(nil, remediations.Entry{ID: "aaaaaa", Outcome: remediations.OutcomeRecovered}),
	}, map[string]any{remediations.PhaseLabel: nil})
	sees("node-1", "aaaaaa", "Recovered")
	require.NoError(t, s.lab.Client().CoreV1().ConfigMaps(lab.Namespace).Delete(t.Context(), "drydock-ledger", metav1.DeleteOptions{}))
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	for range lines {
	}
	require.NoError(t, cmd.Wait(), "an interrupt is how it ends")
}
