package ui

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/lab/browser"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/selftest"
)

// The Fleet page shows what holds for the whole fleet: who or what holds, until when, and the
// command that changes it.
func TestThePageNamesWhatIsInForce(t *testing.T) {
	c := newCluster(t)
	at := time.Now().UTC().Truncate(time.Second)
	until := at.Add(2 * time.Hour)
	c.leads("drydock-7c9d8f6b5-x2kqp")
	c.patch("node-14", map[string]any{remediations.PauseKey: until.Format(time.RFC3339) + " firmware update"}, nil)
	c.record("node-0", remediations.PhaseVerifying, nil)
	c.record("node-3", remediations.PhaseExhausted, nil) // the breaker counts it
	c.ledger(&ledger.Ledger{
		Slots: []ledger.Slot{{Node: "node-0", Repair: idOf("node-0"), Attempt: idOf("node-0") + "-0-1", Zone: "zone-0", Pool: "workers", Since: at}},
		Status: ledger.Status{
			Mode: remediations.ModeEnforce, Limits: map[string]string{"concurrent": "3", "unhealthy": "20%"},
			Blind:    "no Alertmanager answers since " + at.Format(time.RFC3339),
			SelfTest: selftest.Result{State: selftest.Missing, Message: "no Watchdog fires", Since: at},
			Stopped:  map[string]string{"node-disk-pressure": "Civo says that the quota is reached"},
			Breakers: map[string]ledger.Breaker{"zone/zone-1": {State: ledger.BreakerOpen, Since: at, Unhealthy: 3, Nodes: 8, Quiet: at}},
			Holds:    map[remediations.Reason]string{remediations.ReasonOutsideWindow: "policy node-not-ready: outside its window until " + until.Format(time.RFC3339)},
		},
	})
	page, p := tab(t), c.ui("")
	c.open(page, p, "/")
	for what, says := range map[string][]string{
		"the leader":            {"drydock-7c9d8f6b5-x2kqp"},
		"the slots in use":      {"1 of 3"},
		"each zone's count":     {"zone/zone-0 1 of 8 unhealthy, limit 20%", "zone/zone-2 0 of 8 unhealthy, limit 20%"},
		"the open breaker":      {"zone/zone-1 3 of 8 unhealthy, limit 20%, breaker open", "3 of 8 nodes are unhealthy"},
		"blindness":             {"no Alertmanager answers since"},
		"the self-test":         {"no Watchdog fires", "none has arrived yet"},
		"a policy that stopped": {"node-disk-pressure", "the quota is reached"},
		"a window":              {"outside its window until " + until.Format(time.RFC3339)},
		"a pause":               {"node-14: paused (firmware update)", ", until " + until.Format(time.RFC3339), "kubectl drydock --context lab --kubeconfig ", " resume node-14"},
	} {
		await(t, page, what, inForce(says...))
	}
}

// inForce returns a JavaScript expression that is true if the page's part about what is in force
// has all these texts.
func inForce(says ...string) string {
	return fmt.Sprintf(`(text => %s.every(s => text.includes(s)))(document.getElementById("force").innerText.replace(/\s+/g, " "))`, quoted(says))
}

// A node's page has a countdown to its deadline, its Events, its past and its raw records. In a
// storm, the table of the fleet is folded.
func TestAnIncidentIsShownToItsEnd(t *testing.T) {
	c := newCluster(t)
	c.incident()
	event := fmt.Sprintf(`
apiVersion: v1
kind: Event
metadata: {namespace: default, name: incident-%d}
involvedObject: {apiVersion: v1, kind: Node, name: node-9}
reason: RepairIssued
message: reboot was asked for
type: Normal
source: {component: drydock}
firstTimestamp: %[2]s
lastTimestamp: %[2]s
count: 1
`, time.Now().UnixNano(), quoted(time.Now().UTC().Format(time.RFC3339)))
	require.NoError(t, c.lab.Apply(t.Context(), []byte(event)))
	at, p := tab(t), c.ui("", "--alertmanager", c.lab.AlertmanagerURLs()[0])
	c.open(at, p, "/nodes/node-9")
	const countdown = `document.querySelector(".timeline [data-due] time").dataset.span`
	await(t, at, "the deadline counts down", countdown+`?.startsWith("in ")`)
	first, err := browser.Eval[string](t.Context(), at, countdown)
	require.NoError(t, err)
	await(t, at, "the deadline comes nearer", countdown+" !== "+quoted(first))
	await(t, at, "the node's Events", `document.querySelector(".events").innerText.includes("reboot was asked for")`)
	await(t, at, "repairs that ended", `document.querySelector(".history").innerText.includes("a new boot ID, Ready for 30s")`)
	await(t, at, "raw records are folded", `document.getElementById("raw").open === false && !document.getElementById("raw").innerText.includes(`+quoted(`"policy"`)+`)`)
	require.NoError(t, at.Click(t.Context(), "#raw summary"))
	await(t, at, "and unfolded", `document.getElementById("raw").innerText.includes(`+quoted(remediations.NodeRepairKey)+`)`)
	text, err := browser.Eval[string](t.Context(), at, `fetch(location.pathname + ".json").then(r => r.text())`)
	require.NoError(t, err)
	require.Contains(t, text, "reboot was asked for", "the JSON has what the page has")

	// The page shows five rows, those first that a person must check. The other rows are shown on
	// request, and stay so after the next change.
	c.open(at, p, "/")
	for _, says := range []string{"cluster 5 of 24 unhealthy, limit 30%", "zone/zone-0 2 of 8 unhealthy, limit 30%", "zone/zone-2 1 of 8 unhealthy, limit 30%"} {
		await(t, at, "the numbers that the rules counted", inForce(says))
	}
	const rows = `[...document.querySelectorAll("#concern tbody tr")].filter(r => r.getClientRects().length > 0).map(r => r.dataset.of)`
	await(t, at, "the table is folded", rows+`.length === 5 && `+rows+`[0] === "node-13"`)
	require.NoError(t, at.Click(t.Context(), "#unfold"))
	await(t, at, "the table is whole", rows+`.length === 6`)
	c.patch("node-20", map[string]any{remediations.PauseKey: "true disk"}, nil)
	await(t, at, "it stays so when something changes", rows+`.length === 7`)
	filter(t, at, "node-12")
	await(t, at, "it is filtered like the tiles", rows+`.join() === "node-12"`)
}
