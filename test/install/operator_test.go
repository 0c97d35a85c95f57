package install

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/alertmanager/pkg/labels"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/rules"
)

func read(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{root(t)}, path...)...))
	require.NoError(t, err)
	return string(text)
}

// operator are the values that kube-prometheus-stack needs.
var operator = m{"monitoring": m{"operator": true, "labels": m{"release": "kps"}}}

type matcher struct{ Name, MatchType, Value string }

type alertRule struct {
	Alert, Expr, For    string
	Labels, Annotations map[string]string
}

type alertRules struct {
	Metadata struct{ Labels map[string]string }
	Spec     struct {
		Groups []struct {
			Name  string
			Rules []alertRule
		}
	}
}

func shipped(t *testing.T, values m) (alerts map[string]alertRule, of map[string]string) {
	t.Helper()
	var o alertRules
	name, ok := values["fullnameOverride"].(string)
	if !ok {
		name = "drydock"
	}
	find(t, objects(t, render(t, "drydock", values)), "PrometheusRule", name, &o)
	alerts = map[string]alertRule{}
	for _, g := range o.Spec.Groups {
		for _, r := range g.Rules {
			alerts[r.Alert] = r
		}
	}
	return alerts, o.Metadata.Labels
}

// TestTheOperatorGetsEveryRule: the rules are as in rules/, except for the label namespace, and the
// operator finds them by the label release.
func TestTheOperatorGetsEveryRule(t *testing.T) {
	alerts, of := shipped(t, operator)
	require.Equal(t, "kps", of["release"])
	names, err := rules.Names()
	require.NoError(t, err)
	for _, name := range names {
		text, err := rules.Read(name)
		require.NoError(t, err)
		var file struct {
			Groups []struct{ Rules []alertRule }
		}
		require.NoError(t, yaml.Unmarshal(text, &file))
		for _, want := range file.Groups[0].Rules {
			got := alerts[want.Alert]
			require.Equal(t, want.Expr, got.Expr, "%s: run make generate", want.Alert)
			require.Equal(t, want.For, got.For)
			require.Equal(t, want.Annotations, got.Annotations)
			if !strings.Contains(want.Annotations["summary"]+want.Annotations["description"], "$labels.namespace") {
				want.Labels["namespace"] = "drydock"
			}
			require.Equal(t, want.Labels, got.Labels, "what the operator's OnNamespace asks for")
		}
	}
	without, of := shipped(t, m{
		"monitoring": m{"operator": true}, "prometheusRule": m{"labels": m{"team": "a"}, "exclude": []any{"NodeNotReady"}},
		"alertmanagerConfig": m{"namespaceLabel": false},
	})
	require.Len(t, without, len(alerts)-1)
	require.NotContains(t, without, "NodeNotReady")
	require.NotContains(t, without["NodeDiskPressure"].Labels, "namespace")
	require.Equal(t, "a", of["team"])
	for name := range render(t, "drydock", nil) {
		require.NotContains(t, name, "prometheusrule", "no CRD is needed by default")
	}
}

// TestTheChartsNetworkAlertKnowsTheConfiguredNetwork: distributions and teams choose the name of
// the network's DaemonSet.
func TestTheChartsNetworkAlertKnowsTheConfiguredNetwork(t *testing.T) {
	for cni, end := range map[string]string{
		"": `|weave-net"`, "net/my.net": `|weave-net|my\\.net"`, "kube-system/calico-node": `|weave-net"`, "kube-system/cilium": `|weave-net"`,
	} {
		values := m{"monitoring": operator["monitoring"]}
		if cni != "" {
			values["config"] = m{"providers": m{"daemonSets": m{"cni": cni}}}
		}
		rules, _ := shipped(t, values)
		require.Equal(t, 2, strings.Count(rules["CNIPodNotReady"].Expr, `created_by_name=~"anetd|`), cni)
		require.Equal(t, 2, strings.Count(rules["CNIPodNotReady"].Expr, end), "%s: %s", cni, rules["CNIPodNotReady"].Expr)
		missing := strings.TrimSuffix(end, `"`) + `|cilium"`
		require.Equal(t, 2, strings.Count(rules["CNIDaemonSetMissing"].Expr, missing), "%s: %s", cni, rules["CNIDaemonSetMissing"].Expr)
	}
}

// TestTheChartsRulesBelieveTheJobsThatAreThere: configured names of jobs, of the label that
// distinguishes clusters, and of the system's namespaces are in each expression. The release's own
// job is always trusted.
func TestTheChartsRulesBelieveTheJobsThatAreThere(t *testing.T) {
	byDefault, _ := shipped(t, operator)
	own, _ := shipped(t, m{
		"fullnameOverride": "mender", "monitoring": operator["monitoring"],
		"config": m{"cluster": m{"label": "k8s_cluster", "value": "prod-1"}},
		"prometheusRule": m{
			"jobs":             m{"kubeStateMetrics": "ksm", "apiServer": "kube-api", "agent": "probes"},
			"systemNamespaces": "net-.+",
		},
	})
	require.Len(t, own, len(byDefault))
	series := regexp.MustCompile(`\b((?:kube|drydock)_[a-z_]+|up|probe_success)\{`)
	seen := map[string]bool{}
	for name, r := range own {
		require.NotRegexp(t, `kube-state-metrics\|`, r.Expr, name)
		require.NotRegexp(t, `\bcluster\b`, r.Expr, name)
		require.NotContains(t, r.Annotations["summary"]+r.Annotations["description"], "$labels.cluster", name)
		for _, job := range []string{`"ksm"`, `"kube-api"`, `"drydock|.+[-/]drydock|mender"`, `"probes|drydock/mender-agent"`} {
			seen[job] = seen[job] || strings.Contains(r.Expr, "job=~"+job)
		}
		seen["net"] = seen["net"] || strings.Contains(r.Expr, `namespace=~"net-.+"`)
		require.Len(t, series.FindAllString(r.Expr, -1), len(series.FindAllString(byDefault[name].Expr, -1)), name)
	}
	require.Equal(t, map[string]bool{`"ksm"`: true, `"kube-api"`: true, `"drydock|.+[-/]drydock|mender"`: true, `"probes|drydock/mender-agent"`: true, "net": true}, seen)

	var o alertmanagerConfig
	find(t, objects(t, render(t, "drydock", m{
		"monitoring": operator["monitoring"], "config": m{"cluster": m{"label": "k8s_cluster", "value": "prod-1"}},
	})), "AlertmanagerConfig", "drydock", &o)
	require.Contains(t, o.Spec.Route.GroupBy, "k8s_cluster")
	require.NotEmpty(t, o.Spec.InhibitRules)
	for _, rule := range o.Spec.InhibitRules {
		require.Contains(t, rule.Equal, "k8s_cluster", "two clusters' nodes of one name must not silence each other")
	}

	_, err := lab.RenderChart("drydock", "drydock", m{"prometheusRule": m{"jobs": m{"kubeStateMetrics": `a"} or up{job="b`}}})
	require.ErrorContains(t, err, "kubeStateMetrics", "it stands in quotes")
}

type route struct {
	Receiver       string
	RepeatInterval string
	GroupBy        []string
	Matchers       []matcher
	Routes         []route
}

type alertmanagerConfig struct {
	Metadata struct{ Name, Namespace string }
	Spec     struct {
		Route        route
		InhibitRules []struct{ Equal []string }
		Receivers    []struct {
			Name           string
			WebhookConfigs []struct {
				URL          string
				SendResolved bool
				MaxAlerts    int
				HTTPConfig   struct {
					Authorization struct {
						Type        string
						Credentials struct{ Name, Key string }
					}
				}
			}
		}
	}
}

// takes reports whether that route accepts an alert with these labels.
func (r route) takes(t *testing.T, alert map[string]string) bool {
	t.Helper()
	for _, m := range r.Matchers {
		matches, err := labels.ParseMatcher(fmt.Sprintf("%s%s%q", m.Name, m.MatchType, m.Value))
		require.NoError(t, err)
		if !matches.Matches(alert[m.Name]) {
			return false
		}
	}
	return true
}

// TestTheOperatorsRouteReachesDrydock: it accepts every alert that names a policy, and repeats the
// self-test's alert more often. Drydock knows the receiver by the name that the operator gives it.
func TestTheOperatorsRouteReachesDrydock(t *testing.T) {
	manifests := render(t, "drydock", operator)
	var o alertmanagerConfig
	all := objects(t, manifests)
	find(t, all, "AlertmanagerConfig", "drydock", &o)
	alerts, _ := shipped(t, operator)
	for name, a := range alerts {
		wanted := a.Labels["remediation"] != "" && a.Labels["remediation"] != "none"
		require.Equal(t, wanted, o.Spec.Route.takes(t, a.Labels), name)
	}
	require.False(t, o.Spec.Route.takes(t, map[string]string{"alertname": "KubePodCrashLooping"}), "everybody else's")
	if selfTest, ok := alerts["DrydockSelfTest"]; ok {
		selfTest.Labels["alertname"] = "DrydockSelfTest"
		require.True(t, o.Spec.Route.Routes[0].takes(t, selfTest.Labels))
	}
	require.Equal(t, "5m", o.Spec.Route.Routes[0].RepeatInterval)

	post := o.Spec.Receivers[0].WebhookConfigs[0]
	require.Equal(t, "http://drydock.drydock:9095/v1/alerts", post.URL)
	require.True(t, post.SendResolved)
	require.Zero(t, post.MaxAlerts, "what is cut off comes hours later")
	var token struct{ Data map[string]string }
	credentials := post.HTTPConfig.Authorization.Credentials
	find(t, all, "Secret", credentials.Name, &token)
	require.Empty(t, token.Data, "Drydock generates it")

	text, err := lab.RenderedConfig(manifests)
	require.NoError(t, err)
	require.Contains(t, string(text), "  tokenSecret:\n    key: "+credentials.Key+"\n    name: "+credentials.Name+"\n")
	require.Contains(t, string(text), "receiver: "+o.Metadata.Namespace+"/"+o.Metadata.Name+"/"+o.Spec.Receivers[0].Name+"\n")
	text, err = lab.RenderedConfig(render(t, "drydock", nil))
	require.NoError(t, err)
	require.NotContains(t, string(text), "drydock/drydock/drydock", "it is the default's name where the route is written by hand")
}

// TestTheOperatorsRouteIsTheExample in deploy, whose routes are tested with the real Alertmanager.
func TestTheOperatorsRouteIsTheExample(t *testing.T) {
	var example, rendered struct{ Spec map[string]any }
	require.NoError(t, yaml.Unmarshal([]byte(read(t, "deploy", "alertmanagerconfig.yaml")), &example))
	values := m{"monitoring": m{"operator": true}, "secrets": m{"receiverToken": m{"name": "drydock-token"}}}
	find(t, objects(t, render(t, "drydock", values)), "AlertmanagerConfig", "drydock", &rendered)
	require.Equal(t, example.Spec, rendered.Spec)
}
