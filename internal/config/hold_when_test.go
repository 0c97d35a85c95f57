package config

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations/marks"
)

const minimal = `apiVersion: drydock.dev/v1alpha1
kind: Config
receiver: {insecure: true}
alertmanager: {urls: ["http://alertmanager:9093"]}
`

func holdWhen(t *testing.T, text string) marks.List {
	t.Helper()
	c, _, err := load("test.yaml", []byte(minimal+text), Options{SkipFiles: true})
	require.NoError(t, err)
	require.NotNil(t, c.Core.HoldWhen, "nil would be the shipped ones")
	return c.Core.HoldWhen
}

// TestKarpenterHasBothAnnotations: neither includes the other. The other name sets its one.
func TestKarpenterHasBothAnnotations(t *testing.T) {
	for name, want := range map[string][]string{
		"karpenter":          {"karpenter.sh/do-not-disrupt", "karpenter.sh/do-not-repair"},
		"cluster-autoscaler": {"cluster-autoscaler.kubernetes.io/scale-down-disabled"},
	} {
		c, _, err := load("test.yaml", []byte(minimal+"announce: ["+name+"]\n"), Options{SkipFiles: true})
		require.NoError(t, err)
		require.Equal(t, want, c.Core.Announce)
	}
}

// TestMarksAreChangedByName: changing one entry does not need a copy of the shipped list.
func TestMarksAreChangedByName(t *testing.T) {
	shipped := marks.Shipped()
	require.Equal(t, shipped, holdWhen(t, ""))

	with := holdWhen(t, `
holdWhen:
  taints:
    karpenter.sh/disruption: false
    example.com/maintenance: {by: the platform team, means: the machine is being worked on}
  labels:
    dgxc.nvidia.com/nvsentinel-state: {value: draining, by: NVSentinel, means: the node is being drained}
  conditions:
    ExampleSound: {value: "False", by: the platform team, means: it is broken}
  annotations:
    weave.works/kured-reboot-in-progress: {by: kured, means: kured reboots the node, believedFor: 2h}
    example.com/until-removed: {by: the platform team, means: the machine is being worked on}
`)
	require.Len(t, with, len(shipped)+2)
	of := func(kind marks.Kind, key string) (m marks.Mark) {
		i := slices.IndexFunc(with, func(m marks.Mark) bool { return m.Kind == kind && m.Key == key })
		if i >= 0 {
			m = with[i]
		}
		return m
	}
	require.Empty(t, of(marks.Taint, "karpenter.sh/disruption"))
	require.Equal(t, marks.Mark{Kind: "taints", Key: "example.com/maintenance", By: "the platform team", Means: "the machine is being worked on"}, of(marks.Taint, "example.com/maintenance"))
	require.Equal(t, []string{"draining"}, of(marks.Label, "dgxc.nvidia.com/nvsentinel-state").Values)
	require.Equal(t, []string{"False"}, of(marks.Condition, "ExampleSound").Values)
	require.Equal(t, 2*time.Hour, of(marks.Annotation, "weave.works/kured-reboot-in-progress").BelievedFor)
	require.Zero(t, of(marks.Annotation, "example.com/until-removed").BelievedFor)
	require.Equal(t, shipped[0], with[0], "what is not named stays")
	require.True(t, slices.IsSortedFunc(with, func(a, b marks.Mark) int {
		return slices.Index(marks.Kinds, a.Kind) - slices.Index(marks.Kinds, b.Kind)
	}))

	var off strings.Builder
	for _, kind := range marks.Kinds {
		fmt.Fprintf(&off, "  %s:\n", kind)
		for _, key := range shipped.Keys(kind) {
			fmt.Fprintf(&off, "    %s: false\n", key)
		}
	}
	require.Empty(t, holdWhen(t, "holdWhen:\n"+off.String()), "an installation without any is not given the shipped ones")
}

// TestThePageOfNeighboursHasEachShippedMark, with who sets it, what it means, and where that can be
// read.
func TestThePageOfNeighboursHasEachShippedMark(t *testing.T) {
	page, err := os.ReadFile("../../docs/operate/other-systems.md")
	require.NoError(t, err)
	var want, got []string
	for _, m := range marks.Shipped() {
		require.NotEmpty(t, m.By, m.Key)
		require.NotEmpty(t, m.Means, m.Key)
		require.NotEmpty(t, m.Source, m.Key)
		key := "`" + m.Key + "`"
		if m.Values != nil {
			key = "`" + m.Key + "=" + strings.Join(m.Values, "`, `") + "`"
		}
		believed := "while it is there"
		if m.BelievedFor > 0 {
			believed = "for " + text.Duration(m.BelievedFor)
		}
		want = append(want, fmt.Sprintf("| `%s` | %s | %s | %s | %s | %s |", m.Kind, key, m.By, m.Means, believed, m.Source))
	}
	for _, line := range strings.Split(string(page), "\n") {
		if strings.HasPrefix(line, "| `taints` |") || strings.HasPrefix(line, "| `labels` |") || strings.HasPrefix(line, "| `annotations` |") || strings.HasPrefix(line, "| `conditions` |") {
			got = append(got, line)
		}
	}
	require.Equal(t, want, got)
}

// TestDefaultPoolLabelsKnowTheUsualPools: a pool's limit binds without a line of configuration.
func TestDefaultPoolLabelsKnowTheUsualPools(t *testing.T) {
	c, _, err := load("test.yaml", []byte(minimal), Options{SkipFiles: true})
	require.NoError(t, err)
	for who, label := range map[string]string{
		"Civo": "kubernetes.civo.com/civo-node-pool", "Civo, older": "kubernetes.civo.com/node-pool", "Karpenter": "karpenter.sh/nodepool",
		"EKS": "eks.amazonaws.com/nodegroup", "GKE": "cloud.google.com/gke-nodepool", "AKS": "kubernetes.azure.com/agentpool",
		"Cluster API": "cluster.x-k8s.io/deployment-name", "Cluster API's machine pools": "cluster.x-k8s.io/pool-name",
	} {
		require.Equal(t, "a", c.Core.Pool(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{label: "a"}}}), who)
	}
	require.Empty(t, c.Core.Pool(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"example.com/pool": "a"}}}))
}
