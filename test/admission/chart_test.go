package admission

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/remediations/admission"
	clusterapi "drydock.dev/drydock/remediations/providers/clusterapi/settings"
	external "drydock.dev/drydock/remediations/providers/external/settings"
	karpenter "drydock.dev/drydock/remediations/providers/karpenter/settings"
)

const (
	policyFile  = "drydock/templates/validatingadmissionpolicy.yaml"
	webhookFile = "drydock/templates/validatingwebhook.yaml"
	certsFile   = "drydock/templates/certificates.yaml"
)

func render(t *testing.T, values map[string]any) map[string]string {
	t.Helper()
	m, err := lab.RenderChart("drydock", "drydock", values)
	require.NoError(t, err)
	return m
}

type m = map[string]any

// withWebhook are values that switch the admission webhook on.
func withWebhook() m { return m{"webhook": m{"enabled": true}} }

// TestChartKnowsWhoCarriesOutAReplacement: the chart names the users of the configured providers.
// The defaults are those of the program.
func TestChartKnowsWhoCarriesOutAReplacement(t *testing.T) {
	by := func(step string, providers m) string {
		works, _, found := strings.Cut(render(t, m{"config": m{"mode": "enforce", "providers": providers}})[policyFile], `"name":"`+step+`",`)
		require.True(t, found, step)
		list, _, found := strings.Cut(works[strings.LastIndex(works, "variables.user in ")+len("variables.user in "):], " &&")
		require.True(t, found)
		return list
	}
	users := func(providers m) string { return by("replace", providers) }
	byDefault := func(schema string) string {
		var of struct {
			Properties struct {
				Users struct{ Default json.RawMessage }
			}
		}
		require.NoError(t, json.Unmarshal([]byte(schema), &of))
		require.NotEmpty(t, of.Properties.Users.Default)
		return string(of.Properties.Users.Default)
	}
	require.Equal(t, "[]", users(m{}))
	require.Equal(t, byDefault(karpenter.Section.Schema), users(m{"karpenter": m{}}))
	require.Equal(t, "[]", by("external-replace", m{"karpenter": m{}, "clusterAPI": m{"cluster": "capi/prod-1"}}))
	require.Equal(t, byDefault(external.Section.Schema), by("external-replace", m{"external": m{}, "karpenter": m{}}))
	require.Equal(t, "[]", users(m{"external": m{}}))
	cluster := m{"cluster": "capi/prod-1"}
	require.Equal(t, byDefault(clusterapi.Section.Schema), users(m{"clusterAPI": cluster}))
	cluster["users"] = []any{"it's me"}
	require.Equal(t, `["it's me","system:serviceaccount:karpenter:karpenter"]`, users(m{"clusterAPI": cluster, "karpenter": m{}}))
	require.Equal(t, "[]", users(m{"karpenter": m{"users": []any{}}}))
}

// TestChartKnowsWhoInstallsDrivers: the chart has the program's users for this, and changes them by
// name as the program does.
func TestChartKnowsWhoInstallsDrivers(t *testing.T) {
	users := func(webhook m) (list []string) {
		_, text, found := strings.Cut(render(t, m{"config": m{"mode": "enforce", "webhook": webhook}, "admission": withWebhook()})[policyFile], "- name: installs")
		require.True(t, found)
		_, text, _ = strings.Cut(text, "variables.user in ")
		text, _, _ = strings.Cut(text, " && ")
		require.NoError(t, json.Unmarshal([]byte(text), &list))
		return list
	}
	of := func(d admission.Drivers) []string { return slices.Concat(slices.Collect(maps.Values(d))...) }
	require.ElementsMatch(t, of(admission.ShippedDrivers()), users(nil))
	require.NotEmpty(t, users(nil))
	own := m{"nvidia-gpu-operator": []any{"u"}, "amd-gpu-operator": []any{}, "mine": []any{"v"}}
	require.ElementsMatch(t, of(admission.ShippedDrivers().With(admission.Drivers{"nvidia-gpu-operator": {"u"}, "amd-gpu-operator": {}, "mine": {"v"}})), users(m{"drivers": own}))
}

// TestChartFollowsTheConfiguration: the chart installs the webhook if Drydock serves it, and the
// webhook denies if a policy enforces.
func TestChartFollowsTheConfiguration(t *testing.T) {
	byDefault := render(t, nil)
	require.NotContains(t, byDefault, webhookFile, "nobody would answer")
	require.NotContains(t, byDefault, certsFile)
	require.Contains(t, byDefault[policyFile], "validationActions: [Deny]", "whoever writes Drydock's keys is denied in observe mode, too")
	require.NotContains(t, byDefault[policyFile], "variables.busy ||", "nothing is in flight where nothing enforces")

	policy := func(name, mode string) m {
		return m{"name": name, "mode": mode, "match": []any{`a="b"`}, "plan": []any{m{"step": "reboot"}}}
	}
	for name, config := range map[string]m{
		"the mode": {"mode": "enforce"},
		"a policy": {"mode": "observe", "policies": []any{policy("a", "off"), policy("b", "enforce")}},
	} {
		require.Contains(t, render(t, m{"config": config})[policyFile], "!variables.busy ||", name)
	}
	require.NotContains(t, render(t, m{"config": m{"policies": []any{policy("a", "observe")}}})[policyFile], "variables.busy ||")
	require.NotContains(t, render(t, m{"admission": m{"policy": m{"enabled": false}}}), policyFile)

	plain := render(t, m{"admission": withWebhook()})
	require.Contains(t, plain[webhookFile], "targetPort: 9443")
	require.NotContains(t, plain[webhookFile], "evictions")
	const readPod = "resources: [pods]\n  verbs: [get]"
	require.NotContains(t, plain["drydock/templates/clusterrole.yaml"], readPod)
	require.Contains(t, plain[certsFile], `resourceNames: ["drydock-webhook"]`)

	named := render(t, m{"admission": m{"webhook": m{"enabled": true}}, "config": m{"webhook": m{
		"listen": "0.0.0.0:1234", "evictions": true, "configuration": "other", "secret": m{"name": "certs"},
		"exempt": m{"users": []any{"system:serviceaccount:a:b"}, "groups": []any{`it's "c"`}},
	}}})
	require.Contains(t, named[webhookFile], "targetPort: 1234")
	require.Contains(t, named[webhookFile], "name: evictions.admission.drydock.dev")
	require.Contains(t, named["drydock/templates/clusterrole.yaml"], readPod)
	require.Contains(t, named[certsFile], `resourceNames: ["certs"]`)
	require.Contains(t, named[certsFile], `resourceNames: ["other"]`)

	require.NotContains(t, render(t, m{}), webhookFile)
	byURL := render(t, m{"admission": m{"webhook": m{"enabled": true, "url": "https://drydock.example.com:9443/"}}})
	require.Contains(t, byURL[webhookFile], "url: https://drydock.example.com:9443/v1/admit/nodes\n")
	require.NotContains(t, byURL[webhookFile], "kind: Service")
}

// TestChartExemptsTheUsersOfTheCore in both the policy and the webhook.
func TestChartExemptsTheUsersOfTheCore(t *testing.T) {
	all := render(t, m{"admission": m{"webhook": m{"enabled": true}}, "config": m{"webhook": m{"exempt": m{"users": []any{"u"}, "groups": []any{"g"}}}}})
	for _, list := range [][]string{append(admission.AlwaysExempt.Users, "u"), append(admission.AlwaysExempt.Groups, "g")} {
		text, err := json.Marshal(list)
		require.NoError(t, err)
		require.Contains(t, all[policyFile], string(text))
		require.Contains(t, all[webhookFile], string(text))
	}
}

// TestChartWithCertManager: cert-manager makes the certificate, and Drydock gets no right to a
// Secret.
func TestChartWithCertManager(t *testing.T) {
	manager := m{"certManager": m{"enabled": true}, "webhook": m{"enabled": true}}
	_, err := lab.RenderChart("drydock", "drydock", m{"admission": manager})
	require.ErrorContains(t, err, `needs config.webhook.certificates to be "mounted"`)
	all := render(t, m{"config": m{"webhook": m{"certificates": "mounted"}}, "admission": manager})
	require.Contains(t, all[webhookFile], "cert-manager.io/inject-ca-from: drydock/drydock-webhook")
	require.Contains(t, all[certsFile], "kind: Certificate")
	require.Contains(t, all[certsFile], "drydock-webhook.drydock.svc")
	require.NotContains(t, all[certsFile], "kind: Role")
	// The API server checks that the certificate contains the host name that it calls. If the name
	// is missing, the call fails and nothing is denied.
	for name, values := range map[string]m{
		"drydock.example.com": {"config": m{"webhook": m{"certificates": "mounted"}}, "admission": m{"certManager": manager["certManager"], "webhook": m{"enabled": true, "url": "https://drydock.example.com:9443"}}},
		"a.example.com":       {"config": m{"webhook": m{"certificates": "mounted", "dnsNames": []any{"a.example.com", "b.example.com"}}}, "admission": manager},
	} {
		named := render(t, values)
		var config struct{ Webhook struct{ DNSNames []string } }
		text, err := lab.RenderedConfig(named)
		require.NoError(t, err)
		require.NoError(t, yaml.Unmarshal(text, &config))
		var made struct{ Spec struct{ DNSNames []string } }
		_, certificate, found := strings.Cut(named[certsFile], "\n---\n")
		require.True(t, found)
		require.NoError(t, yaml.Unmarshal([]byte(certificate), &made))
		require.Contains(t, made.Spec.DNSNames, name)
		require.Equal(t, config.Webhook.DNSNames, made.Spec.DNSNames)
	}
	require.NotContains(t, render(t, m{"config": m{"webhook": m{"certificates": "mounted"}}, "admission": withWebhook()}), certsFile)
}

// TestChartRefusesUnknownValues.
func TestChartRefusesUnknownValues(t *testing.T) {
	for _, values := range []m{
		{"admission": m{"evictions": true}},
		{"admission": m{"webhook": m{"enabled": true, "url": "http://plain.example.com"}}},
		{"admision": m{}},
	} {
		_, err := lab.RenderChart("drydock", "drydock", values)
		require.Error(t, err, "%v", values)
	}
}

// TestChartLetsOperatorsReadWhatWhyNeeds: the role may read the ConfigMaps and the Lease in
// Drydock's namespace, and the kubelets' Leases. It may write none of them.
func TestChartLetsOperatorsReadWhatWhyNeeds(t *testing.T) {
	all := render(t, m{"config": m{"leaderElection": m{"name": "repairs"}}})
	parts := strings.Split(all["drydock/templates/operator.yaml"], "\n---\n")
	require.Len(t, parts, 3)
	for i, want := range []struct {
		namespace string
		rules     []rbacv1.PolicyRule
	}{
		{"drydock", []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list", "watch"}},
			{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, ResourceNames: []string{"repairs"}, Verbs: []string{"get"}},
		}},
		{"kube-node-lease", []rbacv1.PolicyRule{{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"list"}}}},
	} {
		var role rbacv1.Role
		require.NoError(t, yaml.UnmarshalStrict([]byte(parts[i+1]), &role))
		require.Equal(t, "Role drydock-operator "+want.namespace, role.Kind+" "+role.Name+" "+role.Namespace)
		require.Equal(t, want.rules, role.Rules)
	}
}

// TestChartAsksForRights: the rights on repairs.drydock.dev are required by the policy and by
// Drydock's configuration, and given by the ClusterRole. If switched off, they are in none of the
// three.
func TestChartAsksForRights(t *testing.T) {
	const operatorFile, configFile, roleFile = "drydock/templates/operator.yaml", "drydock/templates/configmap.yaml", "drydock/templates/clusterrole.yaml"
	on := render(t, m{"admission": m{"webhook": m{"enabled": true}, "rights": m{"labels": m{"rbac.authorization.k8s.io/aggregate-to-admin": "true"}}}})
	for _, verb := range admission.RightVerbs() {
		require.Contains(t, on[policyFile], ".check('"+verb+"').allowed()")
		require.Contains(t, on[operatorFile], verb)
	}
	require.Contains(t, on[operatorFile], "name: drydock-operator")
	require.Contains(t, on[operatorFile], `rbac.authorization.k8s.io/aggregate-to-admin: "true"`)
	require.Contains(t, on[configFile], "rights: true")
	require.Contains(t, on[roleFile], "subjectaccessreviews")
	require.NotContains(t, render(t, nil)[roleFile], "subjectaccessreviews", "nobody would ask")
	for name, values := range map[string]m{
		"by the value":         {"admission": m{"webhook": m{"enabled": true}, "rights": m{"enabled": false}}},
		"by the configuration": {"admission": m{"webhook": m{"enabled": true}}, "config": m{"webhook": m{"rights": false}}},
	} {
		off := render(t, values)
		require.NotContains(t, off[policyFile], "authorizer", name)
		require.Contains(t, off[configFile], "rights: false", name)
		require.NotContains(t, off[roleFile], "subjectaccessreviews", name)
	}
}
