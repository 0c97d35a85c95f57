package config

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/signs"
)

func TestWitnessIsRead(t *testing.T) {
	c, warnings := mustLoad(t, base+`
providers: {daemonSets: {cni: calico-system/calico-node}}
policies:
- name: every
  match: ['a="b"']
  witness:
  - {ready: false}
  - {lease: stale}
  - {condition: {type: DiskPressure, status: "True"}}
  - {gpus: missing}
  - {daemonSetPod: {namespace: kube-system, name: kube-proxy}}
  - {daemonSetPod: {from: cni}}
  - {daemonSetPod: {from: kubeProxy}}
  - {provider: notRunning}
  plan: [{step: drain}]
- {name: alone, match: ['a="b"'], witness: none, plan: [{step: drain}]}
- {name: unwritten, match: ['a="b"'], plan: [{step: drain}]}
- {name: 'off', match: ['a="b"'], mode: 'off', plan: [{step: drain}]}
`)
	require.Equal(t, []signs.Sign{
		{Kind: signs.NotReady, Network: "calico-system/calico-node"}, {Kind: signs.StaleLease},
		{Kind: signs.Condition, Name: "DiskPressure", Status: "True", StaleAfter: time.Hour, Network: "calico-system/calico-node"}, {Kind: signs.MissingGPUs},
		{Kind: signs.DaemonSetPod, Name: "kube-system/kube-proxy"},
		{Kind: signs.DaemonSetPod, Name: "calico-system/calico-node", From: "providers.daemonSets.cni"},
		{Kind: signs.DaemonSetPod, From: "providers.daemonSets.kubeProxy"}, {Kind: signs.NotRunning},
	}, c.Core.Policy("every").Witness.Signs)
	require.Equal(t, &signs.Witness{None: true}, c.Core.Policy("alone").Witness)
	require.Nil(t, c.Core.Policy("unwritten").Witness)
	text := lines(warnings)
	require.Contains(t, text, "drydock.yaml:17: warning: policies[0].witness[6]: can never show a fault: providers.daemonSets.kubeProxy is not configured")
	require.Contains(t, text, "drydock.yaml:18: warning: policies[0].witness[7]: can never show a fault: no provider is configured that reports whether a machine runs")
	require.Contains(t, text, "drydock.yaml:21: warning: policies[2]: policy unwritten has no witness, so it repairs nothing (NotWitnessed)")
	require.NotContains(t, text, "policy off has no witness")
	require.NotContains(t, text, "policy alone has no witness")
	require.NotContains(t, text, "policies[0].witness[5]")
}

// TestEveryShippedPolicyAboutNodesHasAWitness: an alert alone disrupts no node. Where nothing on
// the node shows the fault, a person approves the repair.
func TestEveryShippedPolicyAboutNodesHasAWitness(t *testing.T) {
	for _, p := range Shipped().Policies {
		if p.Kind != remediations.KindNode {
			require.Nil(t, p.Witness, p.Name)
			continue
		}
		require.NotNil(t, p.Witness, p.Name)
		require.True(t, len(p.Witness.Signs) > 0 || p.Approval, "policy %s would act on an alert alone", p.Name)
	}
}

// TestAShippedWitnessIsOfTheConfiguredDaemonSet: the alerts count Cilium's pods in any system
// namespace, and kube-proxy's by other names; a witness that looks elsewhere would hold each of
// these repairs for good.
func TestAShippedWitnessIsOfTheConfiguredDaemonSet(t *testing.T) {
	const fixedCilium, fixedProxy = "kube-system/cilium", "kube-system/kube-proxy"
	for name, test := range map[string]struct{ providers, policies, cilium, proxy string }{
		"nothing is configured":         {"", "", fixedCilium, fixedProxy},
		"Cilium in another namespace":   {"daemonSets: {cni: cilium/cilium}", "", "cilium/cilium", fixedProxy},
		"kube-proxy by another name":    {"daemonSets: {kubeProxy: kube-system/kube-proxy-amd64}", "", fixedCilium, "kube-system/kube-proxy-amd64"},
		"both":                          {"daemonSets: {cni: cilium-system/cilium, kubeProxy: proxy/kube-proxy}", "", "cilium-system/cilium", "proxy/kube-proxy"},
		"Cilium chained to another CNI": {"daemonSets: {cni: kube-system/aws-node}", "", fixedCilium, fixedProxy},
		"a policy that changes something else": {
			"daemonSets: {cni: cilium/cilium, kubeProxy: proxy/kube-proxy}",
			"{name: cilium-agent-not-ready, cooldown: 1h}, {name: kube-proxy-not-ready, cooldown: 1h}", "cilium/cilium", "proxy/kube-proxy",
		},
		"a policy with a witness of its own": {
			"daemonSets: {cni: cilium/cilium, kubeProxy: proxy/kube-proxy}",
			"{name: cilium-agent-not-ready, witness: [{daemonSetPod: {namespace: edge, name: cilium}}]}, {name: kube-proxy-not-ready, witness: [{daemonSetPod: {namespace: edge, name: proxy}}]}",
			"edge/cilium", "edge/proxy",
		},
		"a policy of another name": {
			"daemonSets: {cni: cilium/cilium}", "{name: mine, match: ['a=\"b\"'], witness: [{daemonSetPod: {namespace: kube-system, name: cilium}}], plan: [{step: reboot}]}",
			"cilium/cilium", fixedProxy,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := mustLoad(t, base+"providers: {"+test.providers+"}\npolicies: ["+test.policies+"]\n")
			looksAt := func(policy, daemonSet string) {
				require.Equal(t, []signs.Sign{{Kind: signs.DaemonSetPod, Name: daemonSet}}, c.Core.Policy(policy).Witness.Signs, policy)
			}
			looksAt("cilium-agent-not-ready", test.cilium)
			looksAt("kube-proxy-not-ready", test.proxy)
			if !strings.Contains(test.policies, "edge") {
				looksAt("gpu-cilium-agent-not-ready", test.cilium)
				looksAt("gpu-kube-proxy-not-ready", test.proxy)
			}
			if c.Core.Policy("mine") != nil {
				looksAt("mine", fixedCilium)
			}
		})
	}
}

// TestEveryWitnessKnowsTheConfiguredNetwork: without it a node would be repaired because its
// network's DaemonSet was deleted.
func TestEveryWitnessKnowsTheConfiguredNetwork(t *testing.T) {
	const own = "policies: [{name: mine, match: ['a=\"b\"'], witness: [{ready: false}, {condition: {type: NetworkUnavailable, status: \"True\"}}], plan: [{step: reboot}]}]\n"
	for providers, network := range map[string]string{"{}": "", "{daemonSets: {cni: net/calico-node}}": "net/calico-node"} {
		c, _ := mustLoad(t, base+"providers: "+providers+"\n"+own)
		for _, p := range c.Policies {
			if p.Witness == nil || p.Witness.None {
				continue
			}
			require.Equal(t, network, p.Witness.Network, p.Name)
			for _, s := range p.Witness.Whole() {
				if s.Kind == signs.NotReady || s.Kind == signs.Condition {
					require.Equal(t, network, s.Network, "%s: %s", p.Name, s)
				}
			}
		}
		require.Len(t, c.Core.Policy("mine").Witness.Signs, 2)
	}
}

// TestTheRunbooksSayWhatWitnessToWrite, where kube-proxy and Cilium are not where the shipped
// policies look: what they have to copy is a configuration.
func TestTheRunbooksSayWhatWitnessToWrite(t *testing.T) {
	daemonSet := func(name string) signs.Witness {
		return signs.Witness{Signs: []signs.Sign{{Kind: signs.DaemonSetPod, Name: name}}}
	}
	for _, test := range []struct {
		page     string
		policies []map[string]signs.Witness
	}{
		{"KubeProxyNotReady", []map[string]signs.Witness{
			{"kube-proxy-not-ready": {None: true}, "gpu-kube-proxy-not-ready": {None: true}},
			{"windows-kube-proxy-not-ready": daemonSet("kube-system/kube-proxy-windows"), "kube-proxy-not-ready": daemonSet("kube-system/kube-proxy")},
		}},
		{"CiliumAgentNotReady", []map[string]signs.Witness{
			{"cilium-agent-not-ready": daemonSet("kube-system/anetd"), "gpu-cilium-agent-not-ready": daemonSet("kube-system/anetd")},
		}},
	} {
		_, blocks := examples(t, "../rules/runbooks/"+test.page+".md")
		require.Len(t, blocks, len(test.policies), test.page)
		for i, block := range blocks {
			c, _ := mustLoad(t, base+block)
			for name, witness := range test.policies[i] {
				require.Equal(t, &witness, c.Core.Policy(name).Witness, "%s: %s", test.page, name)
			}
		}
	}
}

// TestAPolicyThatTakesGPUNodesIsNamed: GPU nodes boot slowly, and the policies for them alone know
// that. One's own policy comes before these, whatever its name and its alert are.
func TestAPolicyThatTakesGPUNodesIsNamed(t *testing.T) {
	const alert, otherAlert = "match: ['remediation=\"node-not-ready\"']", "match: ['a=\"b\"']"
	const reboot, slowly = "plan: [{step: reboot, wait: 10m}]", "plan: [{step: reboot, wait: 40m}]"
	for name, test := range map[string]struct {
		policy string
		said   bool
	}{
		"it takes all nodes":           {"name: node-not-ready, nodeSelector: {}, " + alert + ", " + reboot, true},
		"it selects by other means":    {"name: node-not-ready, nodeSelector: {matchLabels: {pool: a}}, " + alert + ", " + reboot, true},
		"it leaves them out":           {"name: node-not-ready, nodeSelector: {matchExpressions: [{key: nvidia.com/gpu.count, operator: DoesNotExist}]}, " + alert + ", " + reboot, false},
		"it is for GPU nodes":          {"name: mine, nodeSelector: {matchExpressions: [{key: nvidia.com/gpu.count, operator: Exists}]}, " + alert + ", " + reboot, false},
		"it selects as shipped":        {"name: node-not-ready, " + alert + ", " + reboot, false},
		"it is off":                    {"name: node-not-ready, nodeSelector: {}, mode: 'off', " + alert + ", " + reboot, false},
		"no shipped one has its name":  {"name: mine, " + alert + ", " + reboot, true},
		"no shipped one has its alert": {"name: mine, " + otherAlert + ", " + reboot, true},
		"it waits as long":             {"name: mine, " + alert + ", " + slowly, false},
		"it boots no machine":          {"name: mine, " + alert + ", plan: [{step: drain}]", false},
		"its own twin comes before it": {"name: gpu, nodeSelector: {matchExpressions: [{key: nvidia.com/gpu.count, operator: Exists}]}, " + alert + ", " + slowly + ", witness: none}\n- {name: mine, " + alert + ", " + reboot, false},
		"its own twin comes after it":  {"name: mine, " + alert + ", " + reboot + ", witness: none}\n- {name: gpu, nodeSelector: {matchExpressions: [{key: nvidia.com/gpu.count, operator: Exists}]}, " + alert + ", " + slowly, true},
	} {
		t.Run(name, func(t *testing.T) {
			_, warnings := mustLoad(t, base+"policies:\n- {"+test.policy+", witness: [{ready: false}]}\n")
			require.Equal(t, test.said, strings.Contains(lines(warnings), "also selects GPU nodes and gives them 10m to boot, but policy gpu"), lines(warnings))
		})
	}
}

func TestAConditionOfAWitnessHasAnAgeAndTexts(t *testing.T) {
	c, _ := mustLoad(t, base+`
policies:
- name: texts
  match: ['a="b"']
  witness:
  - {condition: {type: A, status: "True", staleAfter: never}}
  - {condition: {type: B, status: "True", staleAfter: 10m, reason: r, reasonNot: rn, message: m, messageNot: mn}}
  plan: [{step: drain}]
`)
	expr := regexp.MustCompile
	require.Equal(t, []signs.Sign{
		{Kind: signs.Condition, Name: "A", Status: "True"},
		{
			Kind: signs.Condition, Name: "B", Status: "True", StaleAfter: 10 * time.Minute,
			Texts: &signs.Texts{Reason: expr("r"), ReasonNot: expr("rn"), Message: expr("m"), MessageNot: expr("mn")},
		},
	}, c.Core.Policy("texts").Witness.Signs)
}

// TestNVSentinelsRecommendedActionDecides: the message of a condition ends each fault with the
// action that NVSentinel recommends.
func TestNVSentinelsRecommendedActionDecides(t *testing.T) {
	for message, want := range map[string]signs.Answer{
		"ErrorCode:79 GPU:0 fell off the bus Recommended Action=RESTART_BM;":                                                       signs.Ill,
		"ErrorCode:45 GPU:0 Recommended Action=CONTACT_SUPPORT;":                                                                   signs.Unknown,
		"ErrorCode:45 GPU:0 Recommended Action=NONE;ErrorCode:45 GPU:1 Recommended Action=CONTACT_SUPPORT;":                        signs.Unknown,
		"ErrorCode:45 GPU:0 Recommended Action=CONTACT_SUPPORT;ErrorCode:79 GPU:1 fell off the bus Recommended Action=RESTART_BM;": signs.Ill,
		"": signs.Ill,
	} {
		for _, p := range Shipped().Policies {
			if p.Name != "node-gpu-fault" {
				continue
			}
			for _, sign := range p.Witness.Signs {
				n := &corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{
					Type: corev1.NodeConditionType(sign.Name), Status: corev1.ConditionTrue, Message: message, LastHeartbeatTime: metav1.Unix(0, 0),
				}}}}
				w := signs.Weigh([]signs.Sign{sign}, n, nil, time.Time{}, time.Now())
				require.Equal(t, want == signs.Ill, w.Ill, message)
				require.False(t, w.Well, message)
			}
		}
	}
}
