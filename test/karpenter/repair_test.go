package karpenter

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/soak"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/test/owners"
)

// Karpenter's test provider repairs these two faults: the first by a replacement, the second by a
// reboot (kubernetes-sigs/karpenter kwok/cloudprovider/cloudprovider.go RepairPolicies). Drydock's
// plans here have the same step for each.
const (
	needsReplacement corev1.NodeConditionType = "KWOKUnhealthy"
	needsReboot      corev1.NodeConditionType = "KWOKRebootRequired"
)

// toleration is how long Karpenter waits before it repairs a node with such a fault.
const toleration = 30 * time.Second

// rebootKey is the annotation on a Node that requests a reboot in these tests.
const rebootKey = "example.com/reboot"

// rivals are Drydock and Karpenter's node repair on the same NodePools, of two Nodes each. One
// unhealthy Node of two does not open Karpenter's breaker.
type rivals struct {
	*owners.Env
	pools []string

	mu sync.Mutex
	// hung is true while the machines do not reboot although Drydock requests it.
	hung bool
	// boots are the boot IDs that the Nodes had at their last fault, by the names of their
	// NodeClaims. The fault ends with that boot.
	boots map[string]string
	// faults counts the faults of each NodeClaim. repairs are the repairs by both systems.
	faults  map[string]int
	repairs map[string][]string
}

const perPool = 2

// newRivals makes the NodePools and starts Drydock.
func newRivals(t *testing.T, name string, pools int, announce ...string) *rivals {
	t.Helper()
	r := &rivals{boots: map[string]string{}, faults: map[string]int{}, repairs: map[string][]string{}}
	for i := range pools {
		r.pools = append(r.pools, fmt.Sprintf("%s-%d", name, i))
		r.Env = newEnv(t, r.pools[i], perPool)
	}
	owners.Watch(t, karpenter.Dynamic, lab.NodeClaims, "", r.selector(), func(claim *unstructured.Unstructured) []string {
		if what := byKarpenter(claim); what != "" {
			r.repaired(claim.GetName(), what)
		}
		return nil
	})
	r.machines()

	rules := ""
	for _, kind := range []corev1.NodeConditionType{needsReplacement, needsReboot} {
		rules += fmt.Sprintf(`
  - alert: %[1]s
    expr: max by (node) (kube_node_status_condition{condition="%[1]s",status="true"}) == 1
    labels: {remediation: %[1]s}`, kind)
	}
	require.NoError(t, r.Lab.LoadRules(t.Context(), "kwok", []byte("groups:\n- name: kwok\n  rules:"+rules+"\n")))
	policy := func(kind corev1.NodeConditionType, step string) m {
		return m{
			"name": strings.ToLower(string(kind)), "match": []string{fmt.Sprintf("remediation=%q", kind)}, "for": "0s", "proofFor": "1s", "cooldown": "0s", "relapseWindow": "0s",
			"witness": []any{m{"condition": m{"type": kind, "status": "True"}}}, "plan": []any{m{"step": step, "wait": fmt.Sprint(owners.Proven), "attempts": 1}},
		}
	}
	proxy, err := r.Lab.NewProxy()
	require.NoError(t, err)
	t.Cleanup(proxy.Close)
	proxy.After(func(res *http.Response) lab.Verdict {
		if r.Requests(res.Request) && res.StatusCode == http.StatusOK {
			r.repaired(path.Base(res.Request.URL.Path), "Drydock replaces")
		}
		return lab.Pass
	})
	r.Run(lab.DrydockOptions{Server: proxy.URL(), Config: m{
		"announce": append([]string{}, announce...), "policies": []any{policy(needsReplacement, "replace"), policy(needsReboot, "reboot")},
		"limits": m{
			"startupGrace": "0s", "concurrent": "100%", "concurrentPerZone": "100%", "concurrentPerPool": "100%", "unhealthy": "100%", "repairsPerNode": 1000,
			"commonCause": m{"nodes": 0},
		},
		"providers": m{"annotation": m{"key": rebootKey, "value": "now"}},
	}})
	return r
}

func (r *rivals) selector() string {
	return lab.NodePoolLabel + " in (" + strings.Join(r.pools, ",") + ")"
}

// repaired records a repair of the NodeClaim, once.
func (r *rivals) repaired(claim, what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Contains(r.repairs[claim], what) {
		r.repairs[claim] = append(r.repairs[claim], what)
	}
}

func (r *rivals) repairsOf(claim string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.repairs[claim])
}

// byKarpenter returns the repair of the NodeClaim that Karpenter has begun by itself. The condition
// DisruptionReason stays for a moment after a reboot.
func byKarpenter(claim *unstructured.Unstructured) string {
	rebooting, disrupted := conditionOf(claim, "Rebooting"), conditionOf(claim, "DisruptionReason")
	switch {
	case rebooting.Status == metav1.ConditionTrue:
		return "Karpenter reboots since " + rebooting.LastTransitionTime.String()
	case disrupted.Status == metav1.ConditionTrue && disrupted.Reason == "Unhealthy" && rebooting.LastTransitionTime.Before(&disrupted.LastTransitionTime):
		return "Karpenter replaces since " + disrupted.LastTransitionTime.String()
	}
	return ""
}

// conditionOf returns the NodeClaim's condition. It is zero if there is none.
func conditionOf(claim *unstructured.Unstructured, kind string) (found metav1.Condition) {
	data, _, _ := unstructured.NestedSlice(claim.Object, "status", "conditions")
	text, _ := json.Marshal(data)
	var all []metav1.Condition
	_ = json.Unmarshal(text, &all) // the API server checked it
	for _, c := range all {
		if c.Type == kind {
			found = c
		}
	}
	return found
}

// machines simulates the machines of all Nodes. A machine reboots when Drydock or Karpenter
// requests it, and a reboot ends the fault.
func (r *rivals) machines() {
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.T.Context()))
	ended := make(chan struct{})
	r.T.Cleanup(func() { cancel(); <-ended })
	go func() {
		defer close(ended)
		wait.UntilWithContext(ctx, func(ctx context.Context) {
			all, err := r.Lab.Client().CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: r.selector()})
			if err == nil {
				for i := range all.Items {
					err = errors.Join(err, r.machine(ctx, &all.Items[i]))
				}
			}
			if err != nil && ctx.Err() == nil {
				r.T.Logf("a machine, which tries again: %v", err)
			}
		}, 100*time.Millisecond)
	}()
}

func (r *rivals) machine(ctx context.Context, n *corev1.Node) error {
	nodes, claim, boot := r.Lab.Client().CoreV1().Nodes(), claimOf(n), n.Status.NodeInfo.BootID
	r.mu.Lock()
	hung, ill := r.hung, r.boots[claim]
	r.mu.Unlock()
	if n.Annotations[rebootKey] != "" && !hung {
		_, err := nodes.Patch(ctx, n.Name, types.MergePatchType,
			fmt.Appendf(nil, `{"metadata":{"resourceVersion":%q,"annotations":{%q:null}}}`, n.ResourceVersion, rebootKey), metav1.PatchOptions{})
		if err != nil {
			return err
		}
		r.repaired(claim, "Drydock reboots "+boot)
		boot = uuid.NewString()
	}
	if kind := fault(n); kind != "" && boot != ill {
		if err := r.Lab.Heal(ctx, n.Name, boot); err != nil {
			return err
		}
		return r.patch(ctx, n.Name, kind, corev1.ConditionFalse, time.Now())
	}
	for _, kind := range []corev1.NodeConditionType{needsReplacement, needsReboot} {
		if !slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == kind }) {
			return r.patch(ctx, n.Name, kind, corev1.ConditionFalse, time.Now()) // as a monitor does that has just started
		}
	}
	return nil
}

// patch sets the condition of the Node.
func (r *rivals) patch(ctx context.Context, node string, kind corev1.NodeConditionType, status corev1.ConditionStatus, since time.Time) error {
	condition := corev1.NodeCondition{Type: kind, Status: status, Reason: "Test", LastTransitionTime: metav1.NewTime(since), LastHeartbeatTime: metav1.Now()}
	text, err := json.Marshal(m{"status": m{"conditions": []any{condition}}})
	if err != nil {
		return err
	}
	_, err = r.Lab.Client().CoreV1().Nodes().Patch(ctx, node, types.StrategicMergePatchType, text, metav1.PatchOptions{}, "status")
	return err
}

// strike gives the Node a fault. Karpenter repairs the fault after due, or in its next pass if that
// time has already passed.
func (r *rivals) strike(n *corev1.Node, kind corev1.NodeConditionType, due time.Duration) (claim string) {
	r.T.Helper()
	claim = claimOf(n)
	r.mu.Lock()
	r.faults[claim]++
	r.boots[claim] = n.Status.NodeInfo.BootID
	r.mu.Unlock()
	require.NoError(r.T, r.patch(r.T.Context(), n.Name, kind, corev1.ConditionTrue, time.Now().Add(due-toleration)))
	return claim
}

// claimOf returns the name of the Node's NodeClaim. It is empty if the Node has none yet.
func claimOf(n *corev1.Node) string {
	for _, owner := range n.OwnerReferences {
		return owner.Name
	}
	return ""
}

// fault returns which of these tests' conditions the Node has. It is empty if the Node has none.
func fault(n *corev1.Node) corev1.NodeConditionType {
	for _, c := range n.Status.Conditions {
		if (c.Type == needsReplacement || c.Type == needsReboot) && c.Status == corev1.ConditionTrue {
			return c.Type
		}
	}
	return ""
}

// settled waits until neither system works on a Node of the NodePools, and returns these Nodes by
// their NodePool.
func (r *rivals) settled() (nodes map[string][]*corev1.Node) {
	r.T.Helper()
	unsettled := ""
	defer func() {
		if r.T.Failed() {
			r.T.Log("not settled: " + unsettled)
		}
	}()
	r.Eventually(func() bool {
		nodes, unsettled = r.look()
		return unsettled == ""
	}, "both systems have ended their work")
	return nodes
}

// look reads the NodePools, and returns what one of the systems is still working on.
func (r *rivals) look() (nodes map[string][]*corev1.Node, unsettled string) {
	ctx, own := r.T.Context(), metav1.ListOptions{LabelSelector: r.selector()}
	claims, err := karpenter.Dynamic.Resource(lab.NodeClaims).List(ctx, own)
	if err != nil {
		return nil, err.Error()
	}
	for i := range claims.Items {
		c := &claims.Items[i]
		if c.GetDeletionTimestamp() != nil || conditionOf(c, "Initialized").Status != metav1.ConditionTrue || conditionOf(c, "Rebooting").Status == metav1.ConditionTrue {
			return nil, "NodeClaim " + c.GetName()
		}
	}
	all, err := r.Lab.Client().CoreV1().Nodes().List(ctx, own)
	if err != nil {
		return nil, err.Error()
	}
	if want := perPool * len(r.pools); len(claims.Items) != want || len(all.Items) != want {
		return nil, fmt.Sprintf("%d NodeClaims and %d Nodes, not %d", len(claims.Items), len(all.Items), want)
	}
	nodes = map[string][]*corev1.Node{}
	for i := range all.Items {
		n := &all.Items[i]
		j, pool := remediations.ReadJournal(n), n.Labels[lab.NodePoolLabel]
		if fault(n) != "" || len(n.Spec.Taints) > 0 || !owners.Well(n) || j.Record != nil || len(j.Alerts) > 0 || n.Annotations["karpenter.sh/do-not-repair"] != "" {
			return nil, fmt.Sprintf("Node %s: fault %q, taints %v, annotations %v", n.Name, fault(n), n.Spec.Taints, n.Annotations)
		}
		nodes[pool] = append(nodes[pool], n)
	}
	return nodes, r.inTheLedger()
}

// inTheLedger returns the repairs that are still in Drydock's ledger, also those whose Node is
// gone. It is empty if there are none. Repairs that a test left there would hold the repairs of the
// next test.
func (r *rivals) inTheLedger() string {
	l, err := ledgerOf(r.Env)
	if err != nil {
		return err.Error()
	}
	if len(l.Slots)+len(l.Orphans) > 0 {
		return fmt.Sprintf("the ledger: slots %v, orphans %v", l.Slots, l.Orphans)
	}
	return ""
}

// TestEachFaultIsRepairedByOneOfTheTwo: faults come one after the other, and several at the same
// time. Karpenter's toleration ends a little before Drydock begins, at the same moment, or later.
// The system that is first repairs the node, and the other one does nothing.
func TestEachFaultIsRepairedByOneOfTheTwo(t *testing.T) {
	alone, rounds, atOnce := 2, 1, 4
	if soak.Whole() {
		alone, rounds, atOnce = 20, 10, 8
	}
	r := newRivals(t, "rivals", atOnce, "karpenter")
	total := 0
	strike := func(count int) {
		nodes := r.settled()
		for _, i := range rand.Perm(atOnce)[:count] {
			of := nodes[r.pools[i]]
			r.strike(of[rand.IntN(len(of))], []corev1.NodeConditionType{needsReplacement, needsReboot}[total%2], time.Duration(rand.IntN(int(20*time.Second)))-5*time.Second)
			total++
		}
	}
	for range alone {
		strike(1)
	}
	for range rounds {
		strike(atOnce)
	}
	r.settled()

	by, several := map[string]int{}, map[string][]string{}
	for claim, faults := range r.faults {
		repairs := r.repairsOf(claim)
		for _, what := range repairs {
			by[strings.Join(strings.Fields(what)[:2], " ")]++
		}
		if len(repairs) != faults {
			several[claim] = append(repairs, fmt.Sprintf("%d faults", faults))
		}
	}
	t.Logf("%d faults: %v", total, by)
	require.Empty(t, several)
	for claim := range r.repairs {
		require.Contains(t, r.faults, claim, "no other node was repaired")
	}
}

// Karpenter reboots a node that Drydock has begun to repair, unless the repair is announced. If it
// is, Karpenter reports that the annotation is the reason, and Drydock removes the annotation at
// the end.
func TestOnlyTheAnnouncementKeepsKarpentersNodeRepairAway(t *testing.T) {
	for name, announce := range map[string][]string{"silent": nil, "announced": {"karpenter"}} {
		t.Run(name, func(t *testing.T) {
			r := newRivals(t, name, 1, announce...)
			r.hung = true
			n := r.settled()[r.pools[0]][0]
			claim := r.strike(n, needsReboot, 20*time.Second)
			r.Eventually(func() bool { return r.Node(n.Name).Annotations[rebootKey] != "" }, "Drydock requests a reboot")
			require.Empty(t, r.repairsOf(claim), "Drydock is first")
			byOther := func() bool { return len(r.repairsOf(claim)) > 0 }
			if announce == nil {
				r.Eventually(byOther, "Karpenter reboots the node, too")
			} else {
				r.Eventually(func() bool {
					blocked, err := r.Lab.Client().CoreV1().Events("").List(t.Context(), metav1.ListOptions{FieldSelector: "reason=DisruptionBlocked,involvedObject.name=" + n.Name})
					return err == nil && slices.ContainsFunc(blocked.Items, func(event corev1.Event) bool { return strings.Contains(event.Message, "karpenter.sh/do-not-repair") })
				}, "Karpenter says why it leaves the node alone")
				require.False(t, byOther())
			}
			r.mu.Lock()
			r.hung = false
			r.mu.Unlock()
			r.settled()
			if announce != nil {
				require.Equal(t, []string{"Drydock reboots " + n.Status.NodeInfo.BootID}, r.repairsOf(claim))
				require.Equal(t, n.UID, r.Node(n.Name).UID)
			}
		})
	}
}

// gate delays some requests of Karpenter.
type gate struct {
	sent, open   chan struct{}
	once, opened sync.Once
}

func newGate() *gate { return &gate{sent: make(chan struct{}), open: make(chan struct{})} }

func (g *gate) hold() { g.once.Do(func() { close(g.sent) }); <-g.open }
func (g *gate) pass() { g.opened.Do(func() { close(g.open) }) }

func (g *gate) reached() bool {
	select {
	case <-g.sent:
		return true
	default:
		return false
	}
}

// late delays what Karpenter does with the Node after it has chosen it. marks delays its first
// write, the condition of a reboot or the taint of a replacement. acts delays the reboot and the
// deletion.
func (r *rivals) late(claim, node string) (marks, acts *gate) {
	marks, acts = newGate(), newGate()
	at := "/apis/karpenter.sh/v1/nodeclaims/" + claim
	karpenter.Proxy.Before(func(req *http.Request) lab.Verdict {
		if req.Method == http.MethodDelete && req.URL.Path == at {
			acts.hold()
		}
		if req.Method != http.MethodPatch {
			return lab.Pass
		}
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return lab.Reset
		}
		req.Body = io.NopCloser(bytes.NewReader(body))
		switch text := string(body); {
		case req.URL.Path == at+"/status" && strings.Contains(text, `"Rebooting"`), req.URL.Path == "/api/v1/nodes/"+node && strings.Contains(text, "karpenter.sh/disrupted"):
			marks.hold()
		case req.URL.Path == at && strings.Contains(text, "karpenter.sh/reboot-pre-boot-id"):
			acts.hold()
		}
		return lab.Pass
	})
	r.T.Cleanup(func() { karpenter.Proxy.Before(nil); marks.pass(); acts.pass() })
	return marks, acts
}

// Karpenter has chosen the node before Drydock announces its repair, and marks the node a moment
// later. Drydock waits for that moment, and then Karpenter's mark holds it. Both repair the node
// only if Karpenter takes longer.
func TestKarpentersChoiceBeforeTheAnnouncementHoldsDrydock(t *testing.T) {
	for name, c := range map[string]struct {
		kind corev1.NodeConditionType
		// slow: Karpenter marks the node after Drydock has acted.
		slow bool
		by   []string
	}{
		"reboot":      {needsReboot, false, []string{"Karpenter reboots"}},
		"replacement": {needsReplacement, false, []string{"Karpenter replaces"}},
		"slow-reboot": {needsReboot, true, []string{"Drydock reboots", "Karpenter reboots"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRivals(t, name, 1, "karpenter")
			n := r.settled()[r.pools[0]][0]
			pause := func(value string) {
				_, err := r.Lab.Client().CoreV1().Nodes().Patch(t.Context(), n.Name, types.MergePatchType,
					fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%s}}}`, remediations.PauseKey, value), metav1.PatchOptions{})
				require.NoError(t, err)
			}
			pause(`"true"`)
			marks, acts := r.late(claimOf(n), n.Name)
			claim := r.strike(n, c.kind, 0)
			r.Eventually(marks.reached, "Karpenter chooses the node")
			pause("null")
			r.Eventually(func() bool { return r.annotated(n.Name, "karpenter.sh/do-not-repair") }, "Drydock announces its repair")
			if c.slow {
				r.Eventually(func() bool { return len(r.repairsOf(claim)) == 1 }, "Drydock reboots the node")
			}
			require.False(t, acts.reached())
			marks.pass()
			r.Eventually(func() bool { return r.heldBy(n.Name, "Karpenter") || r.byDrydock(claim) }, "Karpenter's mark holds Drydock")
			require.Equal(t, c.slow, r.byDrydock(claim))
			acts.pass()
			r.Eventually(func() bool { return len(r.repairsOf(claim)) == len(c.by) }, "%v", c.by)
			r.settled()
			var by []string
			for _, what := range r.repairsOf(claim) {
				by = append(by, strings.Join(strings.Fields(what)[:2], " "))
			}
			require.Equal(t, c.by, by)
		})
	}
}

func (r *rivals) annotated(node, key string) bool {
	n, err := r.Lab.Client().CoreV1().Nodes().Get(r.T.Context(), node, metav1.GetOptions{})
	return err == nil && n.Annotations[key] != ""
}

// heldBy reports whether the node's repair is held by that owner's mark.
func (r *rivals) heldBy(node, owner string) bool {
	n, err := r.Lab.Client().CoreV1().Nodes().Get(r.T.Context(), node, metav1.GetOptions{})
	if err != nil {
		return false
	}
	record := remediations.ReadJournal(n).Record
	return record != nil && record.Hold != nil && strings.Contains(record.Hold.Message, owner)
}

func (r *rivals) byDrydock(claim string) bool {
	return slices.ContainsFunc(r.repairsOf(claim), func(what string) bool { return strings.HasPrefix(what, "Drydock ") })
}
