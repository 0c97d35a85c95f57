package install

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"drydock.dev/drydock/internal/config"
	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/remediations"
)

// TestRightsFollowTheConfiguration: Drydock may evict pods only if a policy may drain, and may read
// pods only if it judges evictions.
func TestRightsFollowTheConfiguration(t *testing.T) {
	civo := m{"civo": m{"clusterID": "c", "region": "r"}}
	redfish := m{"redfish": m{"bmcs": []any{m{"node": "n", "url": "https://192.0.2.1"}}}}
	var draining []any // the shipped policies with a drain, in observe mode
	for _, p := range config.Shipped().Policies {
		if slices.ContainsFunc(p.Plan, func(s remediations.Step) bool { return s.Name == "drain" }) {
			draining = append(draining, m{"name": p.Name, "mode": "observe"})
		}
	}
	policy := func(mode string, steps ...string) []any {
		var plan []any
		for _, s := range steps {
			plan = append(plan, m{"step": s})
		}
		p := m{"name": "p", "match": []any{`a="b"`}, "plan": plan}
		if mode != "" {
			p["mode"] = mode
		}
		return []any{p}
	}
	for name, tc := range map[string]struct {
		config m
		drains bool
	}{
		"by default":                                        {nil, false},
		"observing, with Civo":                              {m{"providers": civo}, false},
		"enforcing, with Civo":                              {m{"mode": "enforce", "providers": civo}, true},
		"enforcing, without a provider":                     {m{"mode": "enforce"}, false},
		"one policy enforces a drain alone":                 {m{"policies": policy("enforce", "drain")}, true},
		"one policy enforces a drain before a replacement":  {m{"policies": policy("enforce", "drain", "replace"), "providers": civo}, true},
		"one that Civo would have to carry out":             {m{"policies": policy("enforce", "drain", "replace")}, false},
		"one policy enforces a reboot":                      {m{"policies": policy("enforce", "reboot"), "providers": civo}, false},
		"one policy observes a drain":                       {m{"policies": policy("", "drain")}, false},
		"one policy is off in what enforces":                {m{"mode": "enforce", "policies": policy("off", "drain")}, false},
		"one policy follows the mode, and that is enforces": {m{"mode": "enforce", "policies": policy("", "reboot", "drain")}, true},
		// The plan of the shipped policy drains before a reboot.
		"enforcing, with Redfish":                             {m{"mode": "enforce", "providers": redfish}, true},
		"enforcing, with Metal3":                              {m{"mode": "enforce", "providers": m{"annotation": m{"preset": "metal3", "namespace": "metal"}}}, true},
		"enforcing, with hosts that are rebooted":             {m{"mode": "enforce", "providers": m{"hosts": m{"reboot": true}}}, true},
		"enforcing, with hosts that are not":                  {m{"mode": "enforce", "providers": m{"hosts": m{"reboot": false}}}, false},
		"enforcing, but for the plans that drain":             {m{"mode": "enforce", "providers": redfish, "policies": draining}, false},
		"enforcing, with remediators that no plan names":      {m{"mode": "enforce", "providers": m{"external": m{}}}, false},
		"one policy enforces a drain before a remediator":     {m{"policies": policy("enforce", "drain", "external"), "providers": m{"external": m{}}}, true},
		"one before a replacement by a remediator":            {m{"policies": policy("enforce", "drain", "reboot", "external-replace"), "providers": m{"external": m{}}}, true},
		"that replacement alone, which drains on request":     {m{"policies": policy("enforce", "external-replace"), "providers": m{"external": m{}}}, true},
		"that replacement, observed":                          {m{"policies": policy("observe", "drain", "external-replace"), "providers": m{"external": m{}}}, false},
		"one policy enforces a drain before a reboot":         {m{"policies": policy("enforce", "drain", "reboot", "replace"), "providers": redfish}, true},
		"one after all that Redfish can carry out":            {m{"policies": policy("enforce", "reboot", "drain", "replace"), "providers": redfish}, false},
		"one shipped policy enforces a drain before a reboot": {m{"policies": []any{m{"name": "node-gpu-fault", "mode": "enforce"}}, "providers": redfish}, true},
		"one shipped policy enforces what Redfish cannot":     {m{"policies": []any{m{"name": "node-disk-pressure", "mode": "enforce"}}, "providers": redfish}, false},
	} {
		t.Run(name, func(t *testing.T) {
			values := m{"secrets": m{"civoAPIKey": m{"name": "civo"}, "hostsKey": m{"name": "hosts"}}}
			if tc.config != nil {
				values["config"] = tc.config
			}
			role := clusterRole(t, values)
			require.Equal(t, tc.drains, allows(role, "create", "", "pods/eviction"))
			require.Equal(t, tc.drains, allows(role, "list", "", "pods"))
			require.Equal(t, tc.drains, allows(role, "get", "apps", "daemonsets"))
			require.Equal(t, tc.drains, allows(role, "list", "policy", "poddisruptionbudgets"))
			require.False(t, allows(role, "get", "", "pods"))
			require.True(t, allows(role, "patch", "", "nodes"), "its records")
			for _, verb := range []string{"create", "update", "delete"} {
				require.False(t, allows(role, verb, "", "nodes"))
			}
		})
	}
	require.True(t, may(t, serving(m{"config": m{"webhook": m{"evictions": true}}}), "get", "", "pods"))
}

// TestAShippedPolicyThatEnforcesMayDrainIfItsPlanDoes: if the policy has no plan of its own, the
// shipped plan counts, with only the steps that a provider carries out.
func TestAShippedPolicyThatEnforcesMayDrainIfItsPlanDoes(t *testing.T) {
	redfish, karpenter := m{"bmcs": []any{m{"node": "n", "url": "https://192.0.2.1"}}}, m{}
	for _, with := range []struct {
		providers m
		steps     []string
	}{
		{m{"redfish": redfish}, []string{"reboot"}}, {m{"karpenter": karpenter}, []string{"replace"}}, {m{"redfish": redfish, "karpenter": karpenter}, []string{"reboot", "replace"}},
	} {
		drains := 0
		for _, p := range config.Shipped().Policies {
			drain := slices.IndexFunc(p.Plan, func(s remediations.Step) bool { return s.Name == "drain" })
			has := drain >= 0 && slices.ContainsFunc(p.Plan[drain:], func(s remediations.Step) bool { return slices.Contains(with.steps, s.Name) })
			values := m{"config": m{"providers": with.providers, "policies": []any{m{"name": p.Name, "mode": "enforce"}}}}
			require.Equal(t, has, may(t, values, "create", "", "pods/eviction"), "%s, %v: keep drydock.shipped.drain in templates/_config.tpl in step with the shipped plans", p.Name, with.steps)
			if has {
				drains++
			}
		}
		require.Positive(t, drains, with.steps)
	}
	own := m{"name": "node-not-ready", "mode": "enforce", "plan": []any{m{"step": "reboot"}}}
	require.False(t, may(t, m{"config": m{"providers": m{"karpenter": karpenter}, "policies": []any{own}}}, "create", "", "pods/eviction"), "a plan replaces the shipped one")
}

// TestADrainBeforeAnyStepThatIsCarriedOutHasItsRights, whichever provider carries out the step, as
// in the program. The control: without the key that the step needs, the drain never runs.
func TestADrainBeforeAnyStepThatIsCarriedOutHasItsRights(t *testing.T) {
	providers := map[string]m{
		"civo": {"clusterID": "c", "region": "r"}, "redfish": {"bmcs": []any{m{"node": "n", "url": "https://192.0.2.1"}}}, "annotation": {"preset": "metal3", "namespace": "metal"},
		"clusterAPI": {"cluster": "capi/prod"}, "karpenter": {}, "external": {},
		"http.reboot":   {"reboot": m{"url": "https://machines.example"}},
		"http.powerOff": {"powerOff": m{"url": "https://machines.example"}, "observe": m{"url": "https://machines.example"}},
		"http.replace":  {"replace": m{"url": "https://machines.example"}, "observe": m{"url": "https://machines.example"}},
		"fence":         {"agents": []any{m{"agent": "fence_apc", "options": m{"plug": "{node}"}, "nodeSelector": m{}}}},
		"hosts":         {}, "hosts.units": {"units": []any{"x.service"}}, "hosts.reboot": {"reboot": true}, "hosts.sysrq": {"sysrq": true},
		"daemonSets.kubeProxy": {"kubeProxy": "kube-system/kube-proxy"}, "daemonSets.cni": {"cni": "kube-system/calico-node"},
		"clusterWide.rolloutRestart": {"rolloutRestart": []any{"kube-system/kube-proxy"}}, "clusterWide.cni": {"cni": m{"configMap": "kube-system/cni/cni.yaml", "daemonSet": "kube-system/calico-node"}},
	}
	drains := func(step, provider string, of m) bool {
		return may(t, m{
			"secrets": m{"civoAPIKey": m{"name": "civo"}, "hostsKey": m{"name": "hosts"}},
			"config": m{"providers": m{provider: of}, "policies": []any{
				m{"name": "p", "match": []any{`a="b"`}, "mode": "enforce", "plan": []any{m{"step": "drain"}, m{"step": step}}},
			}},
		}, "create", "", "pods/eviction")
	}
	named := regexp.MustCompile(`providers\.(\w+)(?:\.\w+)?`)
	found := 0
	for step, absent := range config.Capabilities(config.Shipped()) {
		if step == "promote-leader" || step == "mark-ready" {
			continue // it is not about nodes, so no drain precedes it
		}
		for _, of := range named.FindAllStringSubmatch(absent, -1) {
			found++
			name := strings.TrimPrefix(of[0], "providers.")
			require.Contains(t, providers, name, "add %s to drydock.steps in templates/_config.tpl, and here", of[0])
			require.True(t, drains(step, of[1], providers[name]), "%s by %s", step, of[0])
			if name != of[1] {
				require.False(t, drains(step, of[1], m{}), "%s without %s", step, of[0])
			}
		}
	}
	require.Positive(t, found)
}

// may reports whether the ClusterRole allows that.
func may(t *testing.T, values m, verb, group, resource string) bool {
	t.Helper()
	return allows(clusterRole(t, values), verb, group, resource)
}

func clusterRole(t *testing.T, values m) (role rbacv1.ClusterRole) {
	t.Helper()
	find(t, objects(t, render(t, "drydock", values)), "ClusterRole", "drydock", &role)
	return role
}

func allows(role rbacv1.ClusterRole, verb, group, resource string) bool {
	for _, r := range role.Rules {
		if r.APIGroups[0] == group && r.Resources[0] == resource {
			for _, v := range r.Verbs {
				if v == verb {
					return true
				}
			}
		}
	}
	return false
}

// TestWithoutTheWebhookDrydockServesNone: otherwise Drydock would wait for its certificate for
// ever, and meanwhile receive no alerts.
func TestWithoutTheWebhookDrydockServesNone(t *testing.T) {
	for _, tc := range []struct {
		webhook m
		serves  bool
	}{{m{"exempt": m{"users": []any{"u"}}}, false}, {m{"certificates": "mounted"}, true}} {
		manifests := render(t, "drydock", m{"config": m{"webhook": tc.webhook}})
		text, err := lab.RenderedConfig(manifests)
		require.NoError(t, err)
		require.Equal(t, tc.serves, strings.Contains(string(text), "webhook:"))
		require.NotContains(t, manifests, "drydock/templates/validatingwebhook.yaml")
	}
}

// TestRightsOfSidecars: Drydock may read pods only if a provider of sidecars is configured, and
// only in its namespaces. The token that goes to pods belongs to a ServiceAccount that may only
// mark sidecars ready.
func TestRightsOfSidecars(t *testing.T) {
	with := func(sidecars ...any) m { return m{"config": m{"providers": m{"sidecars": sidecars}}} }
	kinds := func(values m) (roles, bindings, accounts []string) {
		for _, o := range objects(t, render(t, "drydock", values)) {
			name := o.GetName()
			if ns := o.GetNamespace(); ns != "" && ns != "drydock" {
				name = ns + "/" + name
			}
			if !strings.Contains(name, "sidecars") && !strings.Contains(name, "mark-ready") {
				continue
			}
			switch o.GetKind() {
			case "ClusterRole", "Role":
				roles = append(roles, o.GetKind()+" "+name)
			case "ClusterRoleBinding", "RoleBinding":
				bindings = append(bindings, o.GetKind()+" "+name)
			case "ServiceAccount":
				accounts = append(accounts, name)
			}
		}
		return roles, bindings, accounts
	}
	roles, bindings, accounts := kinds(m{})
	require.Empty(t, append(append(roles, bindings...), accounts...), "without a provider nobody looks at pods")

	roles, bindings, accounts = kinds(with(m{"name": "sei"}))
	require.ElementsMatch(t, []string{"ClusterRole drydock-sidecars", "ClusterRole drydock-mark-ready", "Role drydock-sidecars"}, roles)
	require.ElementsMatch(t, []string{"ClusterRoleBinding drydock-sidecars", "ClusterRoleBinding drydock-mark-ready", "RoleBinding drydock-sidecars"}, bindings)
	require.Equal(t, []string{"drydock-sidecars"}, accounts)

	_, bindings, accounts = kinds(with(m{"name": "sei", "namespaces": []any{"a", "b"}, "auth": m{}}))
	require.ElementsMatch(t, []string{"RoleBinding a/drydock-sidecars", "RoleBinding b/drydock-sidecars"}, bindings)
	require.Empty(t, accounts, "no token is sent")

	_, bindings, accounts = kinds(with(m{"name": "sei", "namespaces": []any{"a", "b"}}))
	require.ElementsMatch(t, []string{"RoleBinding a/drydock-sidecars", "RoleBinding b/drydock-sidecars", "RoleBinding drydock-sidecars", "RoleBinding a/drydock-mark-ready", "RoleBinding b/drydock-mark-ready"}, bindings)
	require.Equal(t, []string{"drydock-sidecars"}, accounts, "its token marks ready where Drydock may, and nowhere else")

	var role rbacv1.ClusterRole
	find(t, objects(t, render(t, "drydock", with(m{"name": "sei"}))), "ClusterRole", "drydock-sidecars", &role)
	resources := map[string][]string{}
	for _, r := range role.Rules {
		resources[r.Resources[0]] = r.Verbs
	}
	require.Equal(t, map[string][]string{"pods": {"get"}, "seinodes": {"get"}, "events": {"create", "patch", "update"}}, resources)

	gate := m{"name": "gate", "selector": m{"matchLabels": m{"app": "gate"}}, "port": "admin", "health": m{"path": "/r"}, "approve": m{"path": "/a", "body": "{}"}}
	role = rbacv1.ClusterRole{}
	find(t, objects(t, render(t, "drydock", with(gate))), "ClusterRole", "drydock-sidecars", &role)
	for _, r := range role.Rules {
		require.NotEqual(t, "seinodes", r.Resources[0], "no owner is asked")
	}
}

// TestRightsOfClusterAPI: Drydock may read Machines only in the Cluster's namespace. It may write
// them only if it enforces, and only in the configured way.
func TestRightsOfClusterAPI(t *testing.T) {
	reads := map[string][]string{"clusters": {"get"}, "machinedeployments": {"get"}, "machinesets": {"get"}, "machinehealthchecks": {"list"}, "machines": {"list"}}
	for name, tc := range map[string]struct {
		config m
		writes map[string][]string
		none   bool
	}{
		"not configured": {config: m{"mode": "enforce"}, none: true},
		"elsewhere":      {config: m{"mode": "enforce", "providers": m{"clusterAPI": m{"cluster": "capi/prod", "kubeconfig": "/etc/drydock/management/kubeconfig"}}}, none: true},
		"observing":      {config: m{"providers": m{"clusterAPI": m{"cluster": "capi/prod"}}}},
		"enforcing":      {config: m{"mode": "enforce", "providers": m{"clusterAPI": m{"cluster": "capi/prod"}}}, writes: map[string][]string{"machines": {"patch"}, "machines/status": {"patch"}}},
		"deleting":       {config: m{"mode": "enforce", "providers": m{"clusterAPI": m{"cluster": "capi/prod", "withoutHealthCheck": "delete"}}}, writes: map[string][]string{"machines": {"delete", "patch"}}},
	} {
		t.Run(name, func(t *testing.T) {
			mounts := []any{m{"secret": "management", "key": "kubeconfig", "path": "management/kubeconfig"}}
			values, found := m{"config": tc.config, "secretMounts": mounts}, 0
			for _, o := range objects(t, render(t, "drydock", values)) {
				text, err := o.MarshalJSON()
				require.NoError(t, err)
				if strings.Contains(string(text), "cluster.x-k8s.io") || strings.HasSuffix(o.GetName(), "-cluster-api") {
					found++
					require.Contains(t, []string{"Role", "RoleBinding"}, o.GetKind())
					require.Equal(t, "capi/drydock-cluster-api", o.GetNamespace()+"/"+o.GetName())
				}
			}
			if tc.none {
				require.Zero(t, found)
				return
			}
			require.Equal(t, 2, found)
			var role rbacv1.Role
			find(t, objects(t, render(t, "drydock", values)), "Role", "drydock-cluster-api", &role)
			verbs := map[string][]string{}
			for _, r := range role.Rules {
				require.Equal(t, []string{"cluster.x-k8s.io"}, r.APIGroups)
				for _, resource := range r.Resources {
					verbs[resource] = append(verbs[resource], r.Verbs...)
				}
			}
			want := maps.Clone(reads)
			for resource, more := range tc.writes {
				want[resource] = append(slices.Clone(want[resource]), more...)
			}
			require.Equal(t, want, verbs)
			require.Equal(t, tc.writes != nil, may(t, values, "create", "", "pods/eviction"), "a drain goes before a replacement")
		})
	}
}

// TestRightsInAManagementClusterElsewhere: these are the same rights as in a cluster that is its
// own management cluster.
func TestRightsInAManagementClusterElsewhere(t *testing.T) {
	values := m{"config": m{"mode": "enforce", "providers": m{"clusterAPI": m{"cluster": "capi-workload/prod"}}}}
	var here rbacv1.Role
	find(t, objects(t, render(t, "drydock", values)), "Role", "drydock-cluster-api", &here)
	file, err := os.ReadFile("../../deploy/cluster-api-management.yaml")
	require.NoError(t, err)
	var there rbacv1.Role
	find(t, objects(t, map[string]string{"management": string(file)}), "Role", "drydock-management", &there)
	require.Equal(t, here.Namespace, there.Namespace)
	require.Equal(t, here.Rules, there.Rules)
}

// TestRightsOfReboots by annotation: only a Drydock that enforces may write the annotated objects,
// and only in their own namespace.
func TestRightsOfRebootsByAnnotation(t *testing.T) {
	for mode, verbs := range map[string][]string{"observe": {"list"}, "enforce": {"list", "patch"}} {
		rules := func(of m) []rbacv1.PolicyRule {
			of["namespace"] = "metal"
			var role rbacv1.Role
			find(t, objects(t, render(t, "drydock", m{"config": m{"mode": mode, "providers": m{"annotation": of}}})), "Role", "drydock-annotation", &role)
			require.Equal(t, "metal", role.Namespace)
			return role.Rules
		}
		require.Equal(t, []rbacv1.PolicyRule{
			{APIGroups: []string{"metal3.io"}, Resources: []string{"baremetalhosts"}, Verbs: verbs},
			{APIGroups: []string{"cluster.x-k8s.io"}, Resources: []string{"machines"}, Verbs: []string{"list"}},
		}, rules(m{"preset": "metal3"}))
		require.Equal(t, []rbacv1.PolicyRule{{APIGroups: []string{"machine.example.com"}, Resources: []string{"servers"}, Verbs: verbs}},
			rules(m{"key": "example.com/reboot", "value": "now", "object": m{"apiVersion": "machine.example.com/v1", "kind": "Server"}}))
	}
	for _, of := range []m{{}, {"annotation": m{"preset": "deckhouse"}}} { // the ClusterRole has the rights on Nodes
		for _, text := range render(t, "drydock", m{"config": m{"mode": "enforce", "providers": of}}) {
			require.NotContains(t, text, "metal3.io")
			require.NotContains(t, text, "drydock-annotation")
		}
	}
}

// TestRightsOfKarpenter: Drydock may delete NodeClaims only if it enforces. Without Karpenter in
// the configuration, it has no right on them.
func TestRightsOfKarpenter(t *testing.T) {
	reads := map[string][]string{"nodeclaims": {"get", "list"}, "nodepools": {"get"}, "nodes": {"get", "list"}, "pods": {"list"}, "poddisruptionbudgets": {"list"}}
	for name, tc := range map[string]struct {
		config m
		there  bool
		claims []string
	}{
		"not configured": {m{"mode": "enforce", "providers": m{"clusterAPI": m{"cluster": "capi/prod"}}}, false, nil},
		"observing":      {m{"providers": m{"karpenter": m{}}}, true, nil},
		"enforcing":      {m{"mode": "enforce", "providers": m{"karpenter": m{}}}, true, []string{"delete"}},
	} {
		t.Run(name, func(t *testing.T) {
			values, found := m{"config": tc.config}, 0
			all := objects(t, render(t, "drydock", values))
			for _, o := range all {
				text, err := o.MarshalJSON()
				require.NoError(t, err)
				if strings.Contains(string(text), "karpenter.sh") || strings.HasSuffix(o.GetName(), "-karpenter") {
					found++
					require.Contains(t, []string{"ClusterRole", "ClusterRoleBinding"}, o.GetKind())
					require.Equal(t, "drydock-karpenter", o.GetName())
				}
			}
			if !tc.there {
				require.Zero(t, found)
				return
			}
			require.Equal(t, 2, found)
			var role rbacv1.ClusterRole
			find(t, all, "ClusterRole", "drydock-karpenter", &role)
			verbs := map[string][]string{}
			for _, r := range role.Rules {
				require.Len(t, r.Resources, 1)
				verbs[r.Resources[0]] = r.Verbs
			}
			want := maps.Clone(reads)
			want["nodeclaims"] = append(slices.Clone(want["nodeclaims"]), tc.claims...)
			require.Equal(t, want, verbs)
			require.Equal(t, tc.claims != nil, may(t, values, "create", "", "pods/eviction"), "a drain goes before a replacement")
		})
	}
}

// TestRightsOfMedik8s: Drydock may take Leases in Medik8s' namespace only if that is configured,
// and only if it enforces.
func TestRightsOfMedik8s(t *testing.T) {
	for name, tc := range map[string]struct {
		config m
		there  bool
	}{
		"not configured": {m{"mode": "enforce", "announce": []any{"karpenter"}}, false},
		"observing":      {m{"announce": []any{"medik8s"}}, false},
		"enforcing":      {m{"mode": "enforce", "announce": []any{"karpenter", "medik8s"}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			all := objects(t, render(t, "drydock", m{"config": tc.config}))
			there := slices.ContainsFunc(all, func(o *unstructured.Unstructured) bool { return o.GetNamespace() == "medik8s-leases" })
			require.Equal(t, tc.there, there)
			if !there {
				return
			}
			var role rbacv1.Role
			find(t, all, "Role", "drydock-medik8s", &role)
			require.Equal(t, []rbacv1.PolicyRule{{
				APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"get", "list", "create", "update", "delete"},
			}}, role.Rules)
		})
	}
}

// TestRightsOfConditions: Drydock may write the Nodes' conditions only if that is configured, and
// only if it enforces.
func TestRightsOfConditions(t *testing.T) {
	for name, tc := range map[string]struct {
		config m
		there  bool
	}{
		"not configured": {m{"mode": "enforce", "announce": []any{"karpenter", "medik8s"}}, false},
		"observing":      {m{"announce": []any{"conditions"}}, false},
		"enforcing":      {m{"mode": "enforce", "announce": []any{"conditions"}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			all := objects(t, render(t, "drydock", m{"config": tc.config}))
			var rights []rbacv1.PolicyRule
			for _, o := range all {
				if o.GetKind() != "ClusterRole" && o.GetKind() != "Role" {
					continue
				}
				var role rbacv1.ClusterRole
				find(t, all, o.GetKind(), o.GetName(), &role)
				for _, r := range role.Rules {
					if slices.Contains(r.Resources, "nodes/status") {
						rights = append(rights, r)
					}
				}
			}
			if !tc.there {
				require.Empty(t, rights)
				return
			}
			require.Equal(t, []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"nodes/status"}, Verbs: []string{"patch"}}}, rights)
			var binding rbacv1.ClusterRoleBinding
			find(t, all, "ClusterRoleBinding", "drydock-conditions", &binding)
			require.Equal(t, "drydock-conditions", binding.RoleRef.Name)
			require.Equal(t, "drydock", binding.Subjects[0].Name)
		})
	}
}

// TestRightsOfOtherRepairers: Drydock may list their objects only if a value says so, and may
// change none of them.
func TestRightsOfOtherRepairers(t *testing.T) {
	for _, there := range []bool{false, true} {
		all := objects(t, render(t, "drydock", m{"rbac": m{"otherRepairers": there}}))
		made := slices.ContainsFunc(all, func(o *unstructured.Unstructured) bool { return o.GetName() == "drydock-other-repairers" })
		require.Equal(t, there, made)
		if !there {
			continue
		}
		var role rbacv1.ClusterRole
		find(t, all, "ClusterRole", "drydock-other-repairers", &role)
		listed := map[string]bool{}
		for _, rule := range role.Rules {
			require.Equal(t, []string{"list"}, rule.Verbs)
			for _, resource := range rule.Resources {
				listed[resource+"."+rule.APIGroups[0]] = true
			}
		}
		require.Equal(t, map[string]bool{
			"nodehealthchecks.remediation.medik8s.io": true, "machinehealthchecks.cluster.x-k8s.io": true, "machines.cluster.x-k8s.io": true, "deployments.apps": true,
		}, listed)
	}
}

// TestRightsOfExternal: Drydock may create remediation objects only if a plan names their template,
// and only if it enforces.
func TestRightsOfExternal(t *testing.T) {
	step := func(namespace, group, kind string) m {
		return m{"step": "external", "wait": "10m", "template": m{"apiVersion": group + "/v1alpha1", "kind": kind + "Template", "namespace": namespace, "name": "own"}}
	}
	policy := func(name string, more m, plan ...any) m {
		p := m{"name": name, "match": []any{"a=\"b\""}, "witness": []any{m{"ready": false}}, "plan": plan}
		maps.Copy(p, more)
		return p
	}
	self, fence := step("medik8s", "self-node-remediation.medik8s.io", "SelfNodeRemediation"), step("fences", "fence-agents-remediation.medik8s.io", "FenceAgentsRemediation")
	deletion := step("workloads", "machine-deletion-remediation.medik8s.io", "MachineDeletionRemediation")
	deletion["step"] = "external-replace"
	metal := step("metal", "infrastructure.cluster.x-k8s.io", "Metal3Remediation")
	for name, tc := range map[string]struct {
		config m
		want   []string // NAMESPACE RESOURCE VERBS
	}{
		"not configured": {m{"mode": "enforce", "policies": []any{policy("one", nil, self)}}, nil},
		"no plan":        {m{"mode": "enforce", "providers": m{"external": m{}}}, nil},
		"observing": {m{"providers": m{"external": m{}}, "policies": []any{policy("one", nil, self)}}, []string{
			"medik8s selfnoderemediations [get list]", "medik8s selfnoderemediationtemplates [get]",
		}},
		"one of two enforces": {m{"providers": m{"external": m{}}, "policies": []any{policy("one", nil, self, metal), policy("two", m{"mode": "enforce"}, self, fence)}}, []string{
			"fences fenceagentsremediations [get list create delete patch]", "fences fenceagentsremediationtemplates [get]",
			"medik8s selfnoderemediations [get list create delete patch]", "medik8s selfnoderemediationtemplates [get]",
			"metal machines [list]", "metal metal3remediations [get list]", "metal metal3remediationtemplates [get]",
		}},
		"a machine is deleted": {m{"mode": "enforce", "providers": m{"external": m{}}, "policies": []any{policy("one", nil, deletion)}}, []string{
			"openshift-machine-api machines [list]", "openshift-machine-api machinesets [get]",
			"workloads machinedeletionremediations [get list create delete patch]", "workloads machinedeletionremediationtemplates [get]",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var have []string
			for _, o := range objects(t, render(t, "drydock", m{"config": tc.config})) {
				if !strings.HasPrefix(o.GetName(), "drydock-external") || o.GetKind() != "Role" {
					require.False(t, tc.want == nil && o.GetName() == "drydock-external", "a right without a plan")
					continue
				}
				var role rbacv1.Role
				require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &role))
				for _, r := range role.Rules {
					require.Len(t, r.Resources, 1)
					have = append(have, fmt.Sprint(role.Namespace, " ", r.Resources[0], " ", r.Verbs))
				}
			}
			slices.Sort(have)
			require.Equal(t, tc.want, have)
		})
	}
}

// TestMountedCertificatesNeedNoRightToTheWebhookConfiguration: a client that may write the webhook
// configuration can redirect all requests. Without that right, a stolen token of Drydock cannot do
// so.
func TestMountedCertificatesNeedNoRightToTheWebhookConfiguration(t *testing.T) {
	for certificates, writes := range map[string]bool{"rotate": true, "mounted": false} {
		var found bool
		for _, o := range objects(t, render(t, "drydock", serving(m{"config": m{"webhook": m{"certificates": certificates}}}))) {
			if o.GetKind() != "ClusterRole" && o.GetKind() != "Role" {
				continue
			}
			text, err := o.MarshalJSON()
			require.NoError(t, err)
			found = found || strings.Contains(string(text), "validatingwebhookconfigurations")
		}
		require.Equal(t, writes, found, certificates)
	}
}
