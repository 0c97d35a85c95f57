package install

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/lab"
)

// TestTheNotesNameTheProvider: the notes name every configured provider of machines. A provider
// that repairs no machine does not count.
func TestTheNotesNameTheProvider(t *testing.T) {
	civo := m{"clusterID": "4711", "region": "LON1"}
	for name, tc := range map[string]struct {
		values m
		says   []string
	}{
		"none":        {m{}, []string{"Providers      NONE: Drydock cannot reboot or replace a node.", "Next: configure a provider"}},
		"Cluster API": {m{"config": m{"providers": m{"clusterAPI": m{"cluster": "default/prod-1"}}}}, []string{"Providers      clusterAPI\n", "Next: look for some days"}},
		"Karpenter":   {m{"config": m{"mode": "enforce", "providers": m{"karpenter": m{}}}}, []string{"Providers      karpenter\n", "Next: break a node"}},
		"Civo":        {m{"secrets": m{"civoAPIKey": m{"name": "s"}}, "config": m{"providers": m{"civo": civo}}}, []string{"Providers      civo (Civo's cluster 4711 in LON1)\n"}},
		"two":         {m{"secrets": m{"civoAPIKey": m{"name": "s"}}, "config": m{"providers": m{"civo": civo, "karpenter": m{}}}}, []string{"Providers      civo, karpenter (Civo's"}},
		"SSH":         {m{"secrets": m{"hostsKey": m{"name": "s"}}, "config": m{"providers": m{"hosts": m{}}}}, []string{"Providers      NONE"}},
		"SSH reboots": {m{"secrets": m{"hostsKey": m{"name": "s"}}, "config": m{"providers": m{"hosts": m{"user": "drydock", "reboot": true}}}}, []string{"Providers      hosts\n"}},
		"an agent":    {m{"agent": m{"enabled": true}}, []string{"Providers      NONE", "Mesh           DaemonSet drydock-agent probes the paths"}},
	} {
		notes, err := lab.RenderNotes("drydock", "drydock", tc.values)
		require.NoError(t, err, name)
		for _, text := range tc.says {
			require.Contains(t, notes, text, name)
		}
	}
}

// TestTheNotesSayWhatAdmissionDoes: the policy denies and never warns. The webhook warns while
// nothing enforces.
func TestTheNotesSayWhatAdmissionDoes(t *testing.T) {
	const keys = "only writes of Drydock's own keys"
	for name, tc := range map[string]struct {
		values m
		says   string
	}{
		"the policy":                   {m{}, "policy, without the webhook; in observe mode it denies " + keys + " and requests without the right."},
		"the policy, without rights":   {m{"admission": m{"rights": m{"enabled": false}}}, "in observe mode it denies " + keys + "."},
		"both":                         {serving(m{}), "webhook and policy; in observe mode they deny " + keys + " and requests without the right, and the webhook warns of what enforce mode would deny."},
		"the webhook":                  {serving(m{"admission": m{"policy": m{"enabled": false}}}), "webhook; in observe mode it denies " + keys + " and requests without the right, and warns of what enforce mode would deny."},
		"the webhook, enforcing":       {serving(m{"config": m{"mode": "enforce"}, "admission": m{"policy": m{"enabled": false}}}), "webhook; it denies changes that collide with a repair."},
		"the policy, one of Drydock's": {m{"config": m{"policies": []any{m{"name": "node-not-ready", "mode": "enforce"}}}}, "policy, without the webhook; it denies changes that collide with a repair."},
	} {
		notes, err := lab.RenderNotes("drydock", "drydock", tc.values)
		require.NoError(t, err, name)
		require.Contains(t, notes, tc.says, name)
	}
}

// TestTheNotesPromiseNoConnection: at an install no alert has arrived yet. The notes name the
// labels that the operator must select, or say that there are none.
func TestTheNotesPromiseNoConnection(t *testing.T) {
	const none = "(no labels; by default kube-prometheus-stack selects only objects with its label release)"
	for name, tc := range map[string]struct {
		values m
		says   []string
	}{
		"no operator": {m{}, []string{"Alerts         NOT by this chart."}},
		"labels":      {m{"monitoring": m{"operator": true, "labels": m{"release": "kps"}}}, []string{"PrometheusRule drydock (release=kps)", "ServiceMonitor drydock (release=kps)"}},
		"no labels":   {m{"monitoring": m{"operator": true}, "agent": m{"enabled": true}}, []string{"PrometheusRule drydock " + none, "ServiceMonitor drydock " + none, "lets Prometheus scrape it " + none + "."}},
	} {
		notes, err := lab.RenderNotes("drydock", "drydock", tc.values)
		require.NoError(t, err, name)
		require.NotContains(t, notes, "Connected:", name)
		require.Contains(t, notes, "shows within a minute or two whether alerts reach Drydock", name)
		for _, text := range tc.says {
			require.Contains(t, notes, text, name)
		}
	}
}

// TestTheNotesAskForTheRunbooksURL while the alerts' links lead to a repository that is not public.
func TestTheNotesAskForTheRunbooksURL(t *testing.T) {
	const asks = "Set prometheusRule.runbookUrl to\n"
	for name, tc := range map[string]struct {
		values m
		asks   bool
	}{
		"no address":             {m{"monitoring": m{"operator": true}}, true},
		"an address":             {m{"monitoring": m{"operator": true}, "prometheusRule": m{"runbookUrl": "https://wiki.example.com/drydock"}}, false},
		"no alerts of the chart": {m{}, false},
	} {
		notes, err := lab.RenderNotes("drydock", "drydock", tc.values)
		require.NoError(t, err, name)
		require.Equal(t, tc.asks, strings.Contains(notes, asks), name)
	}
}

// TestWhoReadsOfTheWebhookReadsOfFirewalls: with a private control plane, the API server's calls
// may never reach the webhook, without any visible failure. If the webhook has a URL of its own, or
// is off, the notes do not mention ports.
func TestWhoReadsOfTheWebhookReadsOfFirewalls(t *testing.T) {
	notes := func(values m) string {
		out, err := lab.RenderNotes("drydock", "drydock", values)
		require.NoError(t, err)
		return out
	}
	texts := map[string]string{"the notes": notes(serving(m{}))}
	for _, page := range [][]string{{"docs", "install.md"}, {"docs", "reference", "admission.md"}, {"rules", "runbooks", "DrydockWebhookFailing.md"}} {
		texts[page[len(page)-1]] = read(t, page...)
	}
	for name, text := range texts {
		for _, says := range []string{"private control plane", "firewall", "9443", ":10250"} {
			require.Contains(t, strings.ToLower(text), says, name)
		}
	}
	require.Contains(t, notes(serving(m{"config": m{"webhook": m{"listen": ":10250"}}})), "must reach port 10250 of the pods")
	require.NotContains(t, notes(serving(m{"admission": m{"webhook": m{"url": "https://drydock.example.com:9443"}}})), "firewall")
	require.NotContains(t, notes(nil), "firewall")
}
