package install

import (
	"cmp"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"drydock.dev/drydock/internal/lab/programs"
)

func deployment(t *testing.T, values m) appsv1.Deployment {
	t.Helper()
	var d appsv1.Deployment
	all := objects(t, render(t, "drydock", values))
	for _, o := range all {
		if o.GetKind() == "Deployment" {
			find(t, all, "Deployment", o.GetName(), &d)
		}
	}
	return d
}

// TestThePodsTakeWhatPeopleAdd: the pods get what the values add. The control: without these values
// the pods have none of it.
func TestThePodsTakeWhatPeopleAdd(t *testing.T) {
	d := deployment(t, m{
		"deploymentAnnotations": m{"example.com/d": "1"},
		"podAnnotations":        m{"example.com/p": "1"},
		"affinity":              m{"nodeAffinity": m{"preferredDuringSchedulingIgnoredDuringExecution": []any{m{"weight": 1, "preference": m{"matchExpressions": []any{m{"key": "a", "operator": "Exists"}}}}}}},
		"topologySpreadConstraints": []any{
			m{"topologyKey": "rack", "maxSkew": 2, "whenUnsatisfiable": "ScheduleAnyway"},
			m{"topologyKey": "row", "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": m{"matchLabels": m{"own": "1"}}},
		},
		"extraArgs": []any{"--pprof=127.0.0.1:6060"}, "extraEnv": []any{m{"name": "HTTPS_PROXY", "value": "http://proxy:3128"}},
		"extraVolumes": []any{m{"name": "more", "configMap": m{"name": "more"}}}, "extraVolumeMounts": []any{m{"name": "more", "mountPath": "/more"}},
		"hostNetwork": true, "podSecurityContext": m{"runAsUser": nil, "fsGroup": nil}, "securityContext": m{"readOnlyRootFilesystem": false},
	})
	require.Equal(t, "1", d.Annotations["example.com/d"])
	pod := d.Spec.Template
	require.Equal(t, "1", pod.Annotations["example.com/p"])
	require.NotEmpty(t, pod.Annotations["checksum/config"])
	require.NotNil(t, pod.Spec.Affinity.NodeAffinity)
	require.Len(t, pod.Spec.TopologySpreadConstraints, 2)
	require.Equal(t, d.Spec.Selector, pod.Spec.TopologySpreadConstraints[0].LabelSelector, "the pods' own, where there is none")
	require.Equal(t, map[string]string{"own": "1"}, pod.Spec.TopologySpreadConstraints[1].LabelSelector.MatchLabels)
	container := pod.Spec.Containers[0]
	require.Equal(t, []string{"run", "--config", "/etc/drydock/config/drydock.yaml", "--log-format=json", "--log-level=info", "--pprof=127.0.0.1:6060"}, container.Args)
	require.Contains(t, container.Env, corev1.EnvVar{Name: "HTTPS_PROXY", Value: "http://proxy:3128"})
	require.Contains(t, container.VolumeMounts, corev1.VolumeMount{Name: "more", MountPath: "/more"})
	require.Equal(t, "more", pod.Spec.Volumes[len(pod.Spec.Volumes)-1].ConfigMap.Name)
	require.True(t, pod.Spec.HostNetwork)
	require.Equal(t, corev1.DNSClusterFirstWithHostNet, pod.Spec.DNSPolicy)
	require.Nil(t, pod.Spec.SecurityContext.RunAsUser, "OpenShift chooses it")
	require.Nil(t, pod.Spec.SecurityContext.FSGroup)
	require.Equal(t, ptr.To(true), pod.Spec.SecurityContext.RunAsNonRoot, "what is not named stays")
	require.Equal(t, ptr.To(false), container.SecurityContext.ReadOnlyRootFilesystem)
	require.Equal(t, ptr.To(false), container.SecurityContext.AllowPrivilegeEscalation)

	plain := deployment(t, nil)
	spec := plain.Spec.Template.Spec
	require.Empty(t, plain.Annotations)
	require.Nil(t, spec.Affinity)
	require.Len(t, spec.TopologySpreadConstraints, 2)
	require.Equal(t, []string{"run", "--config", "/etc/drydock/config/drydock.yaml", "--log-format=json", "--log-level=info"}, spec.Containers[0].Args)
	require.Len(t, spec.Containers[0].Env, 1)
	require.Len(t, spec.Volumes, 1)
	require.False(t, spec.HostNetwork)
	require.Equal(t, ptr.To[int64](65532), spec.SecurityContext.RunAsUser)
}

// TestEveryObjectHasTheCommonLabels and annotations. A key that is set twice is there once.
func TestEveryObjectHasTheCommonLabels(t *testing.T) {
	common := m{
		"commonLabels":      m{"team": "nodes", "app.kubernetes.io/version": "mine", "app.kubernetes.io/name": "mine"},
		"commonAnnotations": m{"example.com/a": "all", "example.com/b": "all"},
		"podLabels":         m{"team": "pods"}, "podAnnotations": m{"example.com/a": "pods"},
		"service":        m{"labels": m{"team": "service"}, "annotations": m{"example.com/a": "service"}},
		"serviceAccount": m{"annotations": m{"example.com/a": "account"}},
		"monitoring":     m{"operator": true, "labels": m{"team": "operator"}}, "agent": m{"enabled": true},
		"grafanaDashboard": m{"enabled": true, "namespace": "grafana", "folder": "Nodes", "labels": m{"grafana_dashboard": "1", "team": "grafana"}},
		"admission":        m{"webhook": m{"enabled": true, "annotations": m{"example.com/a": "webhook"}}},
		"config":           m{"webhook": m{"evictions": true}, "providers": m{"karpenter": m{}, "sidecars": []any{m{"name": "sei"}}}}, "flowSchema": m{"enabled": true},
	}
	teams := map[string]string{}
	all := objects(t, render(t, "drydock", common))
	require.Greater(t, len(all), 40)
	for _, o := range all {
		name := o.GetKind() + "/" + o.GetName()
		require.NotEmpty(t, o.GetLabels()["team"], name)
		require.Equal(t, "all", o.GetAnnotations()["example.com/b"], name)
		require.Equal(t, "drydock-0.1.0", o.GetLabels()["helm.sh/chart"], name)
		require.Equal(t, "mine", o.GetLabels()["app.kubernetes.io/version"], name)
		require.Contains(t, []string{"drydock", "drydock-agent"}, o.GetLabels()["app.kubernetes.io/name"], "%s: the pods are selected by it", name)
		teams[name] = o.GetLabels()["team"] + " " + o.GetAnnotations()["example.com/a"]
	}
	require.Equal(t, "service service", teams["Service/drydock"])
	require.Equal(t, "nodes account", teams["ServiceAccount/drydock"])
	require.Equal(t, "operator all", teams["PrometheusRule/drydock"])
	require.Equal(t, "nodes webhook", teams["ValidatingWebhookConfiguration/drydock"])
	require.Equal(t, "grafana all", teams["ConfigMap/drydock-dashboard"])
	d := deployment(t, common)
	require.Equal(t, "pods", d.Spec.Template.Labels["team"])
	require.Equal(t, "pods", d.Spec.Template.Annotations["example.com/a"])
	var dashboard corev1.ConfigMap
	find(t, all, "ConfigMap", "drydock-dashboard", &dashboard)
	require.Equal(t, "grafana", dashboard.Namespace)
	require.Equal(t, "Nodes", dashboard.Annotations["grafana_folder"])
}

// TestTheNamesCanBeOthers: names can be changed, and everything that refers to a name or a label
// follows.
func TestTheNamesCanBeOthers(t *testing.T) {
	for name, tc := range map[string]struct {
		values m
		called string
		as     string // if empty, the same name
	}{
		"by default":            {nil, "drydock", ""},
		"nameOverride":          {m{"nameOverride": "repairs"}, "drydock-repairs", ""},
		"of the release":        {m{"nameOverride": "dry"}, "drydock", ""},
		"fullnameOverride":      {m{"nameOverride": "repairs", "fullnameOverride": "dock"}, "dock", ""},
		"of the ServiceAccount": {m{"serviceAccount": m{"create": false, "name": "somebody"}}, "drydock", "somebody"},
	} {
		t.Run(name, func(t *testing.T) {
			all := objects(t, render(t, "drydock", tc.values))
			d := deployment(t, tc.values)
			require.Equal(t, tc.called, d.Name)
			selects := func(s map[string]string) {
				require.NotEmpty(t, s)
				require.True(t, labels.SelectorFromSet(s).Matches(labels.Set(d.Spec.Template.Labels)), "%v", s)
			}
			var service corev1.Service
			find(t, all, "Service", tc.called, &service)
			selects(d.Spec.Selector.MatchLabels)
			selects(service.Spec.Selector)
			account := d.Spec.Template.Spec.ServiceAccountName
			require.Equal(t, cmp.Or(tc.as, tc.called), account)
			made := false
			for _, o := range all {
				made = made || o.GetKind() == "ServiceAccount" && o.GetName() == account
				if o.GetKind() == "ClusterRoleBinding" || o.GetKind() == "RoleBinding" {
					var b rbacv1.ClusterRoleBinding
					find(t, all, o.GetKind(), o.GetName(), &b)
					require.Equal(t, account, b.Subjects[0].Name, o.GetName())
				}
			}
			require.Equal(t, name != "of the ServiceAccount", made)
		})
	}
}

// TestFurtherObjectsBelongToTheRelease, whether they are written as mappings or as text.
func TestFurtherObjectsBelongToTheRelease(t *testing.T) {
	all := objects(t, render(t, "drydock", m{"extraObjects": []any{
		m{"apiVersion": "v1", "kind": "ConfigMap", "metadata": m{"name": "{{ .Release.Name }}-a"}},
		"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ include \"drydock.fullname\" . }}-b\n",
	}}))
	var c corev1.ConfigMap
	find(t, all, "ConfigMap", "drydock-a", &c)
	find(t, all, "ConfigMap", "drydock-b", &c)
}

// TestOneAlertCanBeChanged without changing the others. The address of all runbooks can be changed.
func TestOneAlertCanBeChanged(t *testing.T) {
	before, _ := shipped(t, operator)
	after, _ := shipped(t, m{"monitoring": operator["monitoring"], "prometheusRule": m{
		"customRules": m{
			"NodeNotReady": m{"for": "9m", "keepFiringFor": "2m", "severity": "warning"},
			"DrydockDown":  m{"expr": "vector(0)"},
		},
		"runbookUrl": "https://runbooks.example.com/nodes/",
	}})
	require.Equal(t, "9m", after["NodeNotReady"].For)
	require.Equal(t, "warning", after["NodeNotReady"].Labels["severity"])
	require.Equal(t, "node-not-ready", after["NodeNotReady"].Labels["remediation"])
	require.Equal(t, before["NodeNotReady"].Expr, after["NodeNotReady"].Expr)
	require.Equal(t, "vector(0)", after["DrydockDown"].Expr)
	require.Equal(t, before["DrydockDown"].For, after["DrydockDown"].For)
	require.Len(t, after, len(before))
	for name, rule := range after {
		if rule.Annotations["runbook_url"] != "" {
			require.Equal(t, "https://runbooks.example.com/nodes/"+pathOf(before[name]), rule.Annotations["runbook_url"])
		}
		if name != "NodeNotReady" && name != "DrydockDown" {
			require.Equal(t, before[name].Expr, rule.Expr, name)
			require.Equal(t, before[name].For, rule.For, name)
			require.Equal(t, before[name].Labels, rule.Labels, name)
		}
	}
	require.Contains(t, after["NodeNotReady"].Annotations["runbook_url"], "/NodeNotReady.md")
}

// TestThresholdsCanBeChanged: only the threshold changes in the expression. promtool accepts the
// result. The data that makes each alert of the mesh and of Sei fire does not make it fire with a
// far higher threshold. With the shipped threshold it does.
func TestThresholdsCanBeChanged(t *testing.T) {
	before, _ := shipped(t, operator)
	changes := map[string]struct {
		was, is string
		higher  float64
		tried   bool
	}{
		"NodesNotReady":               {"> 0.3", "> 0.5", 0.5, false},
		"NodeReadinessFlapping":       {">= 4", ">= 10", 10, false},
		"DrydockCertificateExpiring":  {"< 1209600", "< 604800", 604800, false},
		"MeshForwardingFault":         {">= 2", ">= 100", 100, true},
		"MeshLeaderDegraded":          {">= 2", ">= 100", 100, true},
		"MeshMembersUnreachable":      {">= 1", ">= 100", 100, true},
		"SeiNodeSidecarReadinessLost": {">= 5", ">= 10", 10, true},
	}
	custom := m{}
	for name, change := range changes {
		custom[name] = m{"threshold": change.higher}
	}
	paths, err := programs.Build(t.Context(), os.Stderr, "promtool")
	require.NoError(t, err)
	promtool := func(args ...string) (string, error) {
		out, err := exec.CommandContext(t.Context(), paths["promtool"], args...).CombinedOutput()
		return string(out), err
	}
	write := func(name string, content any) (file string) {
		text, err := yaml.Marshal(content)
		require.NoError(t, err)
		file = filepath.Join(t.TempDir(), name+".yaml")
		require.NoError(t, os.WriteFile(file, text, 0o600))
		return file
	}
	groups := map[string][]m{}
	for of, rules := range map[string]m{"shipped": {}, "higher": custom} {
		values := m{
			"monitoring": operator["monitoring"], "prometheusRule": m{"customRules": rules},
			"alertmanagerConfig": m{"namespaceLabel": false}, // the alerts must have the labels that the cases contain
		}
		var rule struct{ Spec struct{ Groups []m } }
		find(t, objects(t, render(t, "drydock", values)), "PrometheusRule", "drydock", &rule)
		groups[of] = rule.Spec.Groups
		out, err := promtool("check", "rules", write("rules", m{"groups": groups[of]}))
		require.NoError(t, err, out)
	}
	after, _ := shipped(t, m{"monitoring": operator["monitoring"], "prometheusRule": m{"customRules": custom}})
	for name, rule := range before {
		change, changed := changes[name]
		if !changed {
			require.Equal(t, rule, after[name], name)
			continue
		}
		require.Contains(t, rule.Expr, change.was, name)
		require.Equal(t, strings.ReplaceAll(rule.Expr, change.was, change.is), after[name].Expr)
		if !change.tried {
			require.Equal(t, 1, strings.Count(rule.Expr, change.was), "%s: the chart replaces the only one", name)
			continue
		}
		cases, err := os.ReadFile(filepath.Join("..", "..", "rules", "tests", name+".yaml"))
		require.NoError(t, err)
		for of, all := range groups {
			var suite m
			require.NoError(t, yaml.Unmarshal(cases, &suite))
			// The test evaluates one alert at a time, because promtool would need a minute to
			// evaluate all rules of the file at each step.
			suite["rule_files"] = []string{write("rules", m{"groups": groupsWith(name, all)})}
			out, err := promtool("test", "rules", write(name, suite))
			require.Equal(t, of == "shipped", err == nil, "%s, %s: %s", name, of, out)
		}
	}
}

// groupsWith returns the groups that have the alert.
func groupsWith(alert string, groups []m) []m {
	return slices.DeleteFunc(slices.Clone(groups), func(group m) bool {
		return !slices.ContainsFunc(group["rules"].([]any), func(rule any) bool { return rule.(m)["alert"] == alert })
	})
}

func pathOf(rule alertRule) string { return path.Base(rule.Annotations["runbook_url"]) }

// TestScrapesCanBeChanged, both for Drydock and for the agents.
func TestScrapesCanBeChanged(t *testing.T) {
	own := m{
		"scrapeTimeout":     "5s",
		"relabelings":       []any{m{"targetLabel": "team", "replacement": "nodes"}},
		"metricRelabelings": []any{m{"sourceLabels": []any{"__name__"}, "regex": "go_.*", "action": "drop"}},
	}
	all := objects(t, render(t, "drydock", m{"monitoring": m{"operator": true}, "serviceMonitor": own, "agent": m{"enabled": true, "podMonitor": own}}))
	var monitors struct {
		Spec struct{ Endpoints, PodMetricsEndpoints []m }
	}
	find(t, all, "ServiceMonitor", "drydock", &monitors)
	require.Subset(t, monitors.Spec.Endpoints[0], own)
	find(t, all, "PodMonitor", "drydock-agent", &monitors)
	require.Equal(t, own["metricRelabelings"], monitors.Spec.PodMetricsEndpoints[0]["metricRelabelings"])
	require.Equal(t, "5s", monitors.Spec.PodMetricsEndpoints[0]["scrapeTimeout"])
	require.Len(t, monitors.Spec.PodMetricsEndpoints[0]["relabelings"], 2, "the node of the agent, and one's own")
}

// TestViewAndEditCanIncludeDrydock: by default they do not.
func TestViewAndEditCanIncludeDrydock(t *testing.T) {
	verbs := func(values m) map[string][]string {
		out := map[string][]string{}
		all := objects(t, render(t, "drydock", values))
		for _, o := range all {
			for _, of := range []string{"view", "edit"} {
				if o.GetLabels()["rbac.authorization.k8s.io/aggregate-to-"+of] == "true" {
					var role rbacv1.ClusterRole
					find(t, all, "ClusterRole", o.GetName(), &role)
					for _, r := range role.Rules {
						out[of] = append(out[of], r.Verbs...)
					}
				}
			}
		}
		return out
	}
	require.Empty(t, verbs(nil))
	with := verbs(m{"rbac": m{"aggregateClusterRoles": true}})
	require.ElementsMatch(t, []string{"get", "list", "watch"}, with["view"])
	require.ElementsMatch(t, []string{"get", "list", "watch", "patch", "approve", "cancel", "request", "reset"}, with["edit"], "break-glass is for nobody by default")
}
