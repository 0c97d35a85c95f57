package install

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"

	"drydock.dev/drydock/internal/lab"
)

// TestRightsFollowTheConfiguration: pods are evicted only by what can come to drain, and read only where evictions are
// looked at.
func TestRightsFollowTheConfiguration(t *testing.T) {
	civo := m{"civo": m{"clusterID": "c", "region": "r"}}
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
	} {
		t.Run(name, func(t *testing.T) {
			values := m{"secrets": m{"civoAPIKey": m{"name": "civo"}}}
			if tc.config != nil {
				values["config"] = tc.config
			}
			require.Equal(t, tc.drains, may(t, values, "create", "", "pods/eviction"))
			require.Equal(t, tc.drains, may(t, values, "list", "", "pods"))
			require.Equal(t, tc.drains, may(t, values, "get", "apps", "daemonsets"))
			require.Equal(t, tc.drains, may(t, values, "list", "policy", "poddisruptionbudgets"))
			require.False(t, may(t, values, "get", "", "pods"))
			require.True(t, may(t, values, "patch", "", "nodes"), "its records")
			for _, verb := range []string{"create", "update", "delete"} {
				require.False(t, may(t, values, verb, "", "nodes"))
			}
		})
	}
	require.True(t, may(t, m{"config": m{"webhook": m{"evictions": true}}}, "get", "", "pods"))
}

// may says whether the ClusterRole allows that.
func may(t *testing.T, values m, verb, group, resource string) bool {
	t.Helper()
	var role rbacv1.ClusterRole
	find(t, objects(t, render(t, "drydock", values)), "ClusterRole", "drydock", &role)
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

// TestWithoutTheWebhookDrydockServesNone: it would wait for its certificate for ever, and take no alert meanwhile.
func TestWithoutTheWebhookDrydockServesNone(t *testing.T) {
	off := m{"webhook": m{"enabled": false}}
	for _, tc := range []struct {
		webhook m
		serves  bool
	}{{m{"evictions": true}, false}, {m{"certificates": "mounted"}, true}} {
		manifests := render(t, "drydock", m{"admission": off, "config": m{"webhook": tc.webhook}})
		text, err := lab.RenderedConfig(manifests)
		require.NoError(t, err)
		require.Equal(t, tc.serves, strings.Contains(string(text), "webhook:"))
		require.NotContains(t, manifests, "drydock/templates/validatingwebhook.yaml")
	}
}
