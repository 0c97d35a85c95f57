package config

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/remediations"
	daemonsets "drydock.dev/drydock/remediations/providers/daemonsets/settings"
	hostsettings "drydock.dev/drydock/remediations/providers/hosts/settings"
	"drydock.dev/drydock/remediations/rescue/apiserver"
)

func TestHostsNeedAKeyAndKnownHosts(t *testing.T) {
	c, _ := mustLoad(t, base+"providers: {hosts: {keyFile: key, knownHostsFile: known_hosts}}\n")
	require.Equal(t, &hostsettings.Hosts{
		User: "drydock", Port: 22, KeyFile: "key", KnownHostsFile: "known_hosts", Sudo: true, Timeout: 30 * time.Second,
		Kubelet: "kubelet.service", Containerd: "containerd.service", Units: []string{}, AddressTypes: []string{"InternalIP", "ExternalIP"},
	}, c.Providers["hosts"])
	require.True(t, c.Core.Provided["restart-kubelet"])
	require.True(t, c.Core.Provided["restart-containerd"])
	require.False(t, c.Core.Provided["restart-unit"], "no unit may be named")

	c, warnings := mustLoad(t, base+`providers: {hosts: {user: root, sudo: false, keyFile: key, knownHostsFile: known_hosts, units: [chrony.service, "getty@tty1.service"]}}
policies: [{name: one, match: ['a="b"'], plan: [{step: restart-unit, unit: getty@tty1.service}]}]
`)
	require.NotContains(t, lines(warnings), "restart-unit")
	require.True(t, c.Core.Provided["restart-unit"])
	require.Equal(t, []remediations.Step{{Name: "restart-unit", Unit: "getty@tty1.service", Wait: 3 * time.Minute, Attempts: 1}}, c.Core.Policies[0].Plan)
}

// Hosts reboot only if configured, and then the Nodes that no other provider of reboots claims more
// strongly: one part of a cluster may be Civo's, and the other not.
func TestHostsRebootOnlyNodesWithoutAnotherProvider(t *testing.T) {
	const civo = "  civo: {clusterID: c, region: LON1, apiKeyFile: apikey}\n"
	const hosts = "  hosts: {keyFile: key, knownHostsFile: known_hosts, reboot: true"
	own := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "metal-1", Labels: map[string]string{"site": "cellar"}}, Spec: corev1.NodeSpec{ProviderID: "k3s://metal-1"}}
	none := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "metal-2", Labels: map[string]string{"site": "cellar"}}}
	cloud := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "cloud-1"}, Spec: corev1.NodeSpec{ProviderID: "civo://i-1"}}
	for name, tc := range map[string]struct {
		providers        string
		own, none, cloud string
	}{
		"not written":        {"  hosts: {keyFile: key, knownHostsFile: known_hosts}\n", "", "", ""},
		"alone":              {hosts + "}\n", "hosts", "hosts", "hosts"},
		"beside Civo":        {civo + hosts + "}\n", "hosts", "", "civo"}, // a Node that says nothing could be either's
		"with a selector":    {civo + hosts + ", nodeSelector: {matchLabels: {site: cellar}}}\n", "hosts", "hosts", "civo"},
		"in place of Civo":   {civo + hosts + ", nodeSelector: {}}\n", "hosts", "hosts", "hosts"},
		"with sysrq as well": {hosts + ", sysrq: true}\n", "hosts", "hosts", "hosts"},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := mustLoad(t, base+"providers:\n"+tc.providers)
			for n, want := range map[*corev1.Node]string{own: tc.own, none: tc.none, cloud: tc.cloud} {
				provider, against := c.Core.ProviderOf("reboot", n)
				require.Equal(t, want, provider, "%s: %s", n.Name, against)
			}
			require.Equal(t, name != "not written", Capabilities(c)["reboot"] == "")
		})
	}
}

// sysrq is a step of its own, which a plan must name. There is a warning if sysrq is allowed and no
// plan names it, as when an earlier version rebooted with it.
func TestSysrqIsDoneOnlyWhereAPlanNamesIt(t *testing.T) {
	const hosts = base + "providers: {hosts: {keyFile: key, knownHostsFile: known_hosts, reboot: true, sysrq: true}}\n"
	const warning = "no plan has the step sysrq, so Drydock never uses sysrq; the step reboot always uses systemctl reboot; add {step: sysrq, wait: 10m} after the step reboot, or remove this"
	plan := func(mode, steps string) string {
		return `policies: [{name: own, mode: ` + mode + `, match: ['a="b"'], witness: [{ready: false}], plan: [` + steps + `]}]
`
	}
	const old = "{step: reboot, soft: true, attempts: 2, wait: 10m}"
	for name, tc := range map[string]struct {
		text  string
		warns bool
	}{
		"no plan":                      {hosts, true},
		"a plan of an earlier version": {hosts + plan("enforce", old), true},
		"a plan that is off":           {hosts + plan("off", old+", {step: sysrq}"), true},
		"a plan":                       {hosts + plan("observe", old+", {step: sysrq}"), false},
		"not allowed":                  {strings.Replace(hosts, ", sysrq: true", "", 1), false},
	} {
		t.Run(name, func(t *testing.T) {
			c, warnings := mustLoad(t, tc.text)
			require.Equal(t, tc.warns, strings.Contains(lines(warnings), "providers.hosts.sysrq: "+warning), lines(warnings))
			require.Equal(t, name != "not allowed", Capabilities(c)["sysrq"] == "")
			for step, by := range map[string]string{"reboot": "hosts", "sysrq": map[bool]string{true: "hosts"}[name != "not allowed"]} {
				provider, against := c.Core.ProviderOf(step, &corev1.Node{})
				require.Equal(t, by, provider, against)
			}
		})
	}
	// Without reboot, which is another step.
	c, _ := mustLoad(t, strings.Replace(hosts, ", reboot: true", "", 1))
	require.NotEmpty(t, Capabilities(c)["reboot"])
	require.Empty(t, Capabilities(c)["sysrq"])
	_, warnings := mustLoad(t, strings.Replace(hosts, ", sysrq: true", "", 1)+plan("observe", "{step: sysrq}"))
	require.Contains(t, lines(warnings), "step sysrq of policy own will be skipped: providers.hosts.sysrq")
}

func TestTheControlPlanesHostsAreTriedInTheirOrder(t *testing.T) {
	c, _ := mustLoad(t, base+`stateDir: /var/lib/drydock
controlPlane:
  hosts: [{name: cp-2, address: 192.0.2.12}, {name: cp-1, addresses: [192.0.2.11, "2001:DB8::11"]}]
providers: {hosts: {keyFile: key, knownHostsFile: known_hosts}}
`)
	require.Equal(t, &ControlPlane{Port: 6443, Hosts: []ControlPlaneHost{
		{Name: "cp-2", Addresses: []string{"192.0.2.12"}}, {Name: "cp-1", Addresses: []string{"192.0.2.11", "2001:db8::11"}},
	}}, c.ControlPlane)
	require.Equal(t, "/var/lib/drydock", c.StateDir)
	require.Equal(t, []string{"cp-2", "cp-1"}, c.Core.ControlPlaneHosts)
	require.True(t, c.Core.Wants(map[string]string{"remediation": "apiserver-down"}))
}

const apiservers = `policies: [{name: down, match: ['a="b"'], target: {apiserver: true}, plan: [{step: restart-kubelet}]}]
`

// Without its hosts, Drydock does not watch a control plane: a user's policy causes a warning, the
// shipped one does not.
func TestAPIServersAreIgnoredUnlessConfigured(t *testing.T) {
	const hosts = "providers: {hosts: {keyFile: key, knownHostsFile: known_hosts}}\n"
	for _, providers := range []string{"", hosts} {
		c, warnings := mustLoad(t, base+providers)
		require.NotContains(t, lines(warnings), "apiserver-down")
		require.False(t, c.Core.Wants(map[string]string{"remediation": "apiserver-down"}))
	}
	c, warnings := mustLoad(t, base+hosts+apiservers)
	require.Contains(t, lines(warnings), "drydock.yaml:6: warning: policies[0].plan[0]: step restart-kubelet of policy down will be skipped: controlPlane is not configured (ProviderAbsent)")
	require.False(t, c.Core.Wants(map[string]string{"a": "b"}))

	c, warnings = mustLoad(t, base+hosts+apiservers+"stateDir: /d\ncontrolPlane: {hosts: [{name: cp, address: 192.0.2.1}]}\n")
	require.NotContains(t, lines(warnings), "policy down")
	require.True(t, c.Core.Wants(map[string]string{"a": "b"}))
	p := c.Core.Policy("down")
	require.Equal(t, remediations.KindAPIServer, p.Kind)
	require.Empty(t, p.Labels, "a label that happens to be called node names nothing here")
	require.False(t, p.CordonExhausted, "there is no node to cordon")
	require.Equal(t, apiserver.RescueFor, p.Plan[0].Timeout)
	require.Equal(t, "hosts of API servers", c.Policies[0].Selector())
}

func TestTheShippedPolicyOfAPIServersHasTenMinutes(t *testing.T) {
	p := Shipped().Core.Policy("apiserver-down")
	require.Equal(t, remediations.KindAPIServer, p.Kind)
	require.Equal(t, []remediations.Step{{Name: "restart-kubelet", Wait: time.Minute, Timeout: 10 * time.Minute, Attempts: 1}}, p.Plan)
	require.Zero(t, p.For)
	require.Equal(t, 30*time.Second, p.ProofFor)
	require.Equal(t, 5*time.Minute, p.Cooldown)
	require.False(t, p.CordonExhausted)
}

func TestStepsOfOneNodesPodsNeedTheirDaemonSet(t *testing.T) {
	c, _ := mustLoad(t, base+"providers: {daemonSets: {cni: calico-system/calico-node}}\n")
	require.Equal(t, &daemonsets.DaemonSets{CNI: types.NamespacedName{Namespace: "calico-system", Name: "calico-node"}}, c.Providers["daemonSets"])
	require.True(t, c.Core.Provided["restart-cni"])
	require.False(t, c.Core.Provided["restart-kube-proxy"])
}

const wide = `policies:
- {name: wide, match: ['a="b"'], witness: none, plan: [{step: rollout-restart, daemonSet: kube-system/kube-proxy}, {step: apply-cni}]}
`

func TestClusterWideStepsNeedTheirKey(t *testing.T) {
	c, warnings := mustLoad(t, base+wide)
	require.Contains(t, lines(warnings), "drydock.yaml:6: warning: policies[0].plan[0]: step rollout-restart of policy wide will be skipped: providers.clusterWide.rolloutRestart is not configured (ProviderAbsent)")
	require.Contains(t, lines(warnings), "drydock.yaml:6: warning: policies[0].plan[1]: step apply-cni of policy wide will be skipped: providers.clusterWide.cni is not configured (ProviderAbsent)")
	require.False(t, c.Core.Provided["rollout-restart"] || c.Core.Provided["apply-cni"])
	for _, p := range Shipped().Policies {
		for _, s := range p.Plan {
			require.False(t, remediations.Shipped()[s.Name].ClusterWide, "policy %s: nobody is surprised by a step that reaches every node", p.Name)
		}
	}

	c, warnings = mustLoad(t, base+wide+`providers:
  clusterWide: {rolloutRestart: [kube-system/kube-proxy], cni: {configMap: kube-system/cni-manifest/calico.yaml, daemonSet: kube-system/calico-node}}
`)
	require.NotContains(t, lines(warnings), "policy wide")
	require.Equal(t, &daemonsets.ClusterWide{
		RolloutRestart: []types.NamespacedName{{Namespace: "kube-system", Name: "kube-proxy"}},
		CNI: &daemonsets.CNIManifest{
			ConfigMap: types.NamespacedName{Namespace: "kube-system", Name: "cni-manifest"}, ConfigMapKey: "calico.yaml",
			DaemonSet: types.NamespacedName{Namespace: "kube-system", Name: "calico-node"},
		},
		Bounds: c.Core.ClusterWide,
	}, c.Providers["clusterWide"])
	require.Equal(t, remediations.ClusterWide{MinNodes: 3, MinShare: remediations.Quantity{Value: 30, Percent: true}}, c.Core.ClusterWide)
	require.Equal(t, "kube-system/kube-proxy", c.Core.Policies[0].Plan[0].DaemonSet)
	require.Equal(t, 10*time.Minute, c.Core.Policies[0].Plan[1].Wait)
}
