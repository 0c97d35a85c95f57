// Package deploy_test tests the examples of this folder with a real Alertmanager.
package deploy_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/alertmanager/pkg/labels"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/rules"
)

// example is an Alertmanager configuration from the files of this folder.
type example struct {
	name, text string
	handled    string            // the text with the route for handled alerts, which is a comment in the file
	drydock    string            // what Alertmanager calls Drydock's receiver
	add        map[string]string // labels that alerts have there besides
}

func examples(t *testing.T) []example {
	t.Helper()
	plain, err := os.ReadFile("alertmanager.yaml")
	require.NoError(t, err)
	out := []example{{name: "alertmanager.yaml", text: string(plain), handled: commented.ReplaceAllString(string(plain), "$1$2"), drydock: "drydock"}}
	data, err := os.ReadFile("kube-prometheus-stack-values.yaml")
	require.NoError(t, err)
	var values struct {
		Alertmanager struct {
			Spec   map[string]map[string]string `yaml:"alertmanagerSpec"`
			Config map[string]any
		}
	}
	require.NoError(t, yaml.Unmarshal(data, &values))
	enforcing := values
	enforcing.Alertmanager.Config = nil
	require.NoError(t, yaml.Unmarshal(commented.ReplaceAll(data, []byte("$1$2")), &enforcing))
	require.Equal(t, map[string]map[string]string{"alertmanagerConfigMatcherStrategy": {"type": "None"}}, values.Alertmanager.Spec)
	own := readAlertmanagerConfig(t, "alertmanagerconfig.yaml")
	require.True(t, own.Spec.Route.Continue, "the operator sees to it, but people read it")
	rendered := readAlertmanagerConfig(t, "kube-prometheus-stack.yaml")
	for _, e := range []struct {
		example
		from        alertmanagerConfig
		byNamespace bool
	}{
		{example{name: "alertmanagerconfig.yaml"}, own, false},
		{example{name: "alertmanagerconfig.yaml, by namespace", add: map[string]string{"namespace": "drydock"}}, own, true},
		{example{name: "the chart's, by namespace", add: map[string]string{"namespace": "drydock"}}, rendered, true},
	} {
		text, err := yaml.Marshal(e.from.merged(values.Alertmanager.Config, e.byNamespace))
		require.NoError(t, err)
		e.text, e.drydock = string(text), "drydock/drydock/drydock"
		text, err = yaml.Marshal(e.from.merged(enforcing.Alertmanager.Config, e.byNamespace))
		require.NoError(t, err)
		e.handled = string(text)
		out = append(out, e.example)
	}
	return out
}

// shipped returns the alerts of the rules, with the labels that their promtool tests expect.
func shipped(t *testing.T) []model.LabelSet {
	t.Helper()
	names, err := rules.Names()
	require.NoError(t, err)
	var out []model.LabelSet
	for _, file := range names {
		name := strings.TrimSuffix(file, ".yaml")
		data, err := os.ReadFile(filepath.Join("../rules/tests", file))
		require.NoError(t, err)
		var content struct {
			Tests []struct {
				Checks []struct {
					Alertname string
					Alerts    []struct {
						Labels model.LabelSet `yaml:"exp_labels"`
					} `yaml:"exp_alerts"`
				} `yaml:"alert_rule_test"`
			}
		}
		require.NoError(t, yaml.Unmarshal(data, &content))
		seen := map[model.Fingerprint]bool{}
		for _, c := range content.Tests {
			for _, check := range c.Checks {
				for _, a := range check.Alerts {
					a.Labels["alertname"] = model.LabelValue(check.Alertname)
					if fp := a.Labels.Fingerprint(); check.Alertname == name && !seen[fp] {
						seen[fp] = true
						out = append(out, a.Labels)
					}
				}
			}
		}
		require.NotEmpty(t, seen, "no test of %s says which labels it has", name)
	}
	return out
}

// alertmanager is the URL of a real Alertmanager.
type alertmanager string

func start(t *testing.T, config string) alertmanager {
	t.Helper()
	url, _ := lab.AlertmanagerAlone(t, config)
	return alertmanager(url + "/api/v2/alerts")
}

func (a alertmanager) post(t *testing.T, all []model.LabelSet) {
	t.Helper()
	body := []map[string]any{}
	for _, set := range all {
		body = append(body, map[string]any{"labels": set, "endsAt": time.Now().Add(time.Hour)})
	}
	text, err := json.Marshal(body)
	require.NoError(t, err)
	res, err := http.Post(string(a), "application/json", bytes.NewReader(text))
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Equal(t, http.StatusOK, res.StatusCode)
}

// said is Alertmanager's answer about an alert.
type said struct {
	Labels    model.LabelSet
	Receivers []struct{ Name string }
	Status    struct{ InhibitedBy []string }
}

func (s said) receivers() []string {
	var out []string
	for _, r := range s.Receivers {
		out = append(out, r.Name)
	}
	slices.Sort(out)
	return out
}

// all waits until there are n alerts, and returns them.
func (a alertmanager) all(t *testing.T, n int) []said {
	t.Helper()
	var out []said
	require.Eventually(t, func() bool {
		res, err := http.Get(string(a))
		if err != nil {
			return false
		}
		defer func() { _ = res.Body.Close() }()
		out = nil
		return json.NewDecoder(res.Body).Decode(&out) == nil && len(out) >= n
	}, 2*time.Minute, 50*time.Millisecond)
	require.Len(t, out, n)
	return out
}

func with(set model.LabelSet, more map[string]string) model.LabelSet {
	out := maps.Clone(set)
	for k, v := range more {
		if _, has := out[model.LabelName(k)]; !has {
			out[model.LabelName(k)] = model.LabelValue(v)
		}
	}
	return out
}

// elsewhere reports whether the operator's matcher excludes the alert, which is of another
// namespace, from Drydock's routes and inhibitions. Drydock finds such an alert by polling.
func elsewhere(e example, set model.LabelSet) bool {
	ns := e.add["namespace"]
	return ns != "" && string(set["namespace"]) != ns
}

// TestEveryAlertReachesItsReceivers: an alert with a policy reaches Drydock and the pager, an alert
// for people only the pager, and the self-test only Drydock. Alerts about repairs also reach a
// chat. A repair in progress, or one that did not last, reaches only the chat.
func TestEveryAlertReachesItsReceivers(t *testing.T) {
	for _, e := range examples(t) {
		t.Run(e.name, func(t *testing.T) {
			a := start(t, e.text)
			var all []model.LabelSet
			for _, set := range shipped(t) {
				// Prometheus adds labels of its own to what a rule says.
				all = append(all, with(set, e.add), with(with(set, map[string]string{"prometheus": "monitoring/k8s"}), e.add))
			}
			theirs := model.LabelSet{"alertname": "KubePodCrashLooping", "severity": "warning", "namespace": "shop"}
			all = append(all, theirs)
			a.post(t, all)
			for _, s := range a.all(t, len(all)) {
				want := []string{e.drydock, "pager"}
				switch s.Labels["remediation"] {
				case "none", "":
					want = []string{"pager"}
				case "drydock-self-test":
					want = []string{e.drydock}
					if e.drydock != "drydock" { // the operator passes it on to a receiver without a target
						want = append(want, "null")
					}
				}
				if elsewhere(e, s.Labels) {
					want = []string{"pager"}
				}
				switch s.Labels["alertname"] {
				case "DrydockRepairInProgress", "DrydockRepairRelapsed":
					want = []string{"repairs-chat"}
				case "DrydockRepairExhausted", "DrydockRepairHeldTooLong":
					want = []string{"pager", "repairs-chat"}
				}
				require.Equal(t, want, s.receivers(), "%v", s.Labels)
			}
		})
	}
}

// TestInhibitionsSilenceWhatTheyAreFor: each scene is a cluster of its own, in one Alertmanager.
func TestInhibitionsSilenceWhatTheyAreFor(t *testing.T) {
	sidecar := func(node string) model.LabelSet {
		set := model.LabelSet{"alertname": "SidecarNotReady", "remediation": "sidecar-not-ready", "severity": "warning", "seinode": "v0"}
		if node != "" {
			set["node"] = model.LabelValue(node)
		}
		return set
	}
	notReady := model.LabelSet{"alertname": "NodeNotReady", "remediation": "node-not-ready", "node": "n1"}
	heartbeat := model.LabelSet{"alertname": "NodeHeartbeatLost", "remediation": "node-heartbeat-lost", "node": "n1"}
	storm := model.LabelSet{"alertname": "NodesNotReady", "remediation": "none"}
	watchdog := model.LabelSet{"alertname": "Watchdog", "severity": "none"}
	everything := append(shipped(t), watchdog)
	ofANode := func(s model.LabelSet) bool {
		r := string(s["remediation"])
		return strings.HasPrefix(r, "node-") || strings.HasPrefix(r, "cilium-") || strings.HasPrefix(r, "cni-") || strings.HasPrefix(r, "kube-proxy-") || strings.HasPrefix(r, "mesh-forwarding-")
	}
	var others []model.LabelSet // all shipped alerts except the storm
	down, led := map[model.LabelValue]bool{}, map[model.LabelValue]bool{}
	for _, s := range everything {
		if s["alertname"] != "NodesNotReady" {
			others = append(others, s)
		}
		if s["alertname"] == "NodeNotReady" || s["alertname"] == "NodeHeartbeatLost" {
			down[s["node"]] = true
		}
		if s["alertname"] == "MeshLeaderDegraded" {
			led[s["location"]] = true
		}
	}
	forwarding := func(s model.LabelSet) bool { return s["remediation"] == "mesh-forwarding-fault" }
	// alerts about an object that is down, or whose leader relays nothing
	inhibited := func(s model.LabelSet) bool {
		return (strings.HasPrefix(string(s["remediation"]), "sidecar-") || forwarding(s)) && down[s["node"]] || forwarding(s) && led[s["location"]]
	}
	fault := func(node, location model.LabelValue) model.LabelSet {
		return model.LabelSet{"alertname": "MeshForwardingFault", "remediation": "mesh-forwarding-fault", "node": node, "location": location}
	}
	degraded := model.LabelSet{"alertname": "MeshLeaderDegraded", "remediation": "mesh-leader-degraded", "location": "east"}
	scenes := map[string]struct {
		fire   []model.LabelSet
		silent func(model.LabelSet) bool
	}{
		"a node is down": {
			[]model.LabelSet{notReady, sidecar("n1"), sidecar("n2"), sidecar(""), fault("n1", "east"), fault("n2", "east"), watchdog},
			func(s model.LabelSet) bool { return (s["seinode"] != "" || forwarding(s)) && s["node"] == "n1" },
		},
		"a leader relays nothing": {
			[]model.LabelSet{degraded, fault("n1", "east"), fault("n2", "east"), fault("n3", "west"), notReady, sidecar("n2")},
			func(s model.LabelSet) bool { return forwarding(s) && s["location"] == "east" },
		},
		"a heartbeat is lost": {
			[]model.LabelSet{heartbeat, sidecar("n1"), sidecar("n2"), sidecar("")},
			func(s model.LabelSet) bool { return s["seinode"] != "" && s["node"] == "n1" },
		},
		"another fault of the node": {
			[]model.LabelSet{{"alertname": "NodeDiskPressure", "remediation": "node-disk-pressure", "node": "n1"}, sidecar("n1")},
			func(model.LabelSet) bool { return false },
		},
		"many nodes at once": {slices.Concat(others, []model.LabelSet{storm, sidecar("n7")}), func(s model.LabelSet) bool {
			return ofANode(s) || inhibited(s)
		}},
		"everything but many nodes at once": {slices.Concat(others, []model.LabelSet{sidecar("n7")}), inhibited},
	}
	for _, e := range examples(t) {
		t.Run(e.name, func(t *testing.T) {
			a := start(t, e.text)
			var all []model.LabelSet
			for scene, s := range scenes {
				for _, set := range s.fire {
					set = with(set, e.add)
					set["cluster"] = model.LabelValue(scene)
					all = append(all, set)
				}
			}
			// Alerts without the label cluster are inhibited only by alerts without it.
			all = append(all, with(notReady, e.add), with(sidecar("n1"), e.add), with(sidecar("n2"), e.add))
			unique := map[model.Fingerprint]model.LabelSet{}
			for _, set := range all {
				unique[set.Fingerprint()] = set
			}
			a.post(t, slices.Collect(maps.Values(unique)))
			var wrong []model.LabelSet
			var count int
			// The part that inhibits gets an alert a moment after the part that lists it.
			require.Eventually(t, func() bool {
				wrong, count = nil, 0
				for _, s := range a.all(t, len(unique)) {
					want := s.Labels["seinode"] != "" && s.Labels["node"] == "n1"
					if scene := string(s.Labels["cluster"]); scene != "" {
						want = scenes[scene].silent(s.Labels)
					}
					want = want && !elsewhere(e, s.Labels)
					if want != (len(s.Status.InhibitedBy) > 0) {
						wrong = append(wrong, s.Labels)
					}
					if want {
						count++
					}
				}
				return len(wrong) == 0
			}, 2*time.Minute, 100*time.Millisecond, "%v", &wrong)
			require.Greater(t, count, 8)
		})
	}
}

// TestNoInhibitionSilencesItsOwnSource: whatever the labels in equal are. The alerts that show that
// alerts arrive are not inhibited either.
func TestNoInhibitionSilencesItsOwnSource(t *testing.T) {
	for _, e := range examples(t) {
		var c struct {
			Inhibitions []struct {
				Source []string `yaml:"source_matchers"`
				Target []string `yaml:"target_matchers"`
			} `yaml:"inhibit_rules"`
		}
		require.NoError(t, yaml.Unmarshal([]byte(e.text), &c))
		require.NotEmpty(t, c.Inhibitions, e.name)
		for i, r := range c.Inhibitions {
			source, target := parse(t, r.Source), parse(t, r.Target)
			sources := 0
			for _, set := range append(shipped(t), model.LabelSet{"alertname": "Watchdog"}) {
				set = with(set, e.add)
				name := set["alertname"]
				if source.Matches(set) {
					sources++
					require.False(t, target.Matches(set), "%s: inhibition %d: %s silences itself", e.name, i, name)
				}
				if slices.Contains([]model.LabelValue{"Watchdog", "DrydockSelfTest", "DrydockSourceDown", "NodesNotReady"}, name) {
					require.False(t, target.Matches(set), "%s: inhibition %d silences %s", e.name, i, name)
				}
			}
			require.Positive(t, sources, "%s: inhibition %d has no source among the shipped alerts", e.name, i)
		}
	}
}

func parse(t *testing.T, texts []string) labels.Matchers {
	t.Helper()
	var out labels.Matchers
	for _, text := range texts {
		m, err := labels.ParseMatcher(text)
		require.NoError(t, err)
		out = append(out, m)
	}
	return out
}

// TestDrydocksRoutesContinue: each route has continue: true, except that of the self-test, if it
// can be kept from the pager.
func TestDrydocksRoutesContinue(t *testing.T) {
	for _, e := range examples(t) {
		type route struct {
			Receiver       string
			Matchers       []string
			Continue       bool
			GroupBy        []string `yaml:"group_by"`
			GroupWait      string   `yaml:"group_wait"`
			RepeatInterval string   `yaml:"repeat_interval"`
			Routes         []route
		}
		var c struct{ Route route }
		require.NoError(t, yaml.Unmarshal([]byte(e.text), &c))
		var to []route
		var walk func(r route)
		walk = func(r route) {
			if r.Receiver == e.drydock {
				to = append(to, r)
			}
			for _, child := range r.Routes {
				walk(child)
			}
		}
		walk(c.Route)
		require.Len(t, to, 2, e.name)
		for _, r := range to {
			require.Contains(t, []string{"0s", "1s"}, r.GroupWait, e.name)
			if strings.Contains(strings.Join(r.Matchers, ","), "DrydockSelfTest") {
				require.Equal(t, "5m", r.RepeatInterval, e.name)
				continue
			}
			require.True(t, r.Continue, "%s: %v", e.name, r.Matchers)
			require.Equal(t, []string{"alertname", "cluster", "node"}, r.GroupBy, "%s: one node's alerts in one post", e.name)
		}
	}
}
