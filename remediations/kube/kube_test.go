package kube_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/alertmanager/pkg/labels"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/intake"
	"drydock.dev/drydock/remediations/kube"
	"drydock.dev/drydock/remediations/providers/kilo/election"
	"drydock.dev/drydock/remediations/signs"
	"drydock.dev/drydock/remediations/targets/location"
	"drydock.dev/drydock/remediations/targets/sidecar"
)

func TestMain(m *testing.M) {
	lab.Main(m, lab.Options{Components: lab.APIServerOnly, Nodes: 12})
}

func node(t *testing.T, name string) *corev1.Node {
	t.Helper()
	n, err := lab.Shared(t).Client().CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	return n
}

func ptr[T any](v T) *T { return &v }

func TestAWriteIsAllOrNothingAndOnlyOnTheNodeThatWasRead(t *testing.T) {
	j := kube.NodeWriter{Client: lab.Shared(t).Client()}
	read := node(t, "node-0")
	change := engine.NodeChange{
		Annotations: map[string]*string{remediations.NodeRepairKey: ptr("a record")}, Labels: map[string]*string{remediations.PhaseLabel: ptr("Acting")},
		Unschedulable: ptr(true),
	}
	written, err := j.Write(t.Context(), read, change)
	require.NoError(t, err)
	require.Equal(t, "a record", written.Annotations[remediations.NodeRepairKey])
	now := node(t, "node-0")
	require.Equal(t, "Acting", now.Labels[remediations.PhaseLabel])
	require.True(t, now.Spec.Unschedulable)
	require.Equal(t, now.ResourceVersion, written.ResourceVersion)

	_, err = j.Write(t.Context(), read, change)
	require.ErrorIs(t, err, engine.ErrConflict, "the Node is not as it was read")
	another := now.DeepCopy()
	another.UID = "another"
	_, err = j.Write(t.Context(), another, change)
	require.ErrorIs(t, err, engine.ErrConflict, "another Node of that name")
	gone := now.DeepCopy()
	gone.Name = "no-such-node"
	_, err = j.Write(t.Context(), gone, change)
	require.ErrorIs(t, err, engine.ErrNotFound)

	_, err = j.Write(t.Context(), now, engine.NodeChange{
		Annotations: map[string]*string{remediations.NodeRepairKey: nil}, Labels: map[string]*string{remediations.PhaseLabel: nil}, Unschedulable: ptr(false),
	})
	require.NoError(t, err)
	now = node(t, "node-0")
	require.NotContains(t, now.Annotations, remediations.NodeRepairKey)
	require.NotContains(t, now.Labels, remediations.PhaseLabel)
	require.False(t, now.Spec.Unschedulable)
}

func TestACordonIsOwnedByItsLastWriter(t *testing.T) {
	client := lab.Shared(t).Client()
	j := kube.NodeWriter{Client: client}
	owns := func() bool {
		owned, err := j.OwnsCordon(t.Context(), "node-1")
		require.NoError(t, err)
		return owned
	}
	by := func(manager, body string) {
		_, err := client.CoreV1().Nodes().Patch(t.Context(), "node-1", types.MergePatchType, []byte(body), metav1.PatchOptions{FieldManager: manager})
		require.NoError(t, err)
	}
	require.False(t, owns(), "nobody has cordoned it")
	_, err := j.Write(t.Context(), node(t, "node-1"), engine.NodeChange{Unschedulable: ptr(true)})
	require.NoError(t, err)
	require.True(t, owns())
	by("kubectl-cordon", `{"spec":{"unschedulable":null}}`)
	by("kubectl-cordon", `{"spec":{"unschedulable":true}}`)
	require.False(t, owns(), "a person uncordoned it and cordoned it again")
}

// TestAnAnnouncementIsOwnedByItsLastWriter. It is not only Drydock's if another client has applied
// it as well.
func TestAnAnnouncementIsOwnedByItsLastWriter(t *testing.T) {
	client := lab.Shared(t).Client()
	j := kube.NodeWriter{Client: client}
	keys := []string{"example.com/ours", "example.com/changed", "example.com/applied", "example.com/before"}
	by := func(kind types.PatchType, body string) {
		_, err := client.CoreV1().Nodes().Patch(t.Context(), "node-3", kind, []byte(body), metav1.PatchOptions{FieldManager: "another"})
		require.NoError(t, err)
	}
	by(types.MergePatchType, `{"metadata":{"annotations":{"example.com/before":"true"}}}`)
	set := map[string]*string{}
	for _, key := range keys[:3] {
		set[key] = ptr("true")
	}
	_, err := j.Write(t.Context(), node(t, "node-3"), engine.NodeChange{Annotations: set})
	require.NoError(t, err)
	by(types.MergePatchType, `{"metadata":{"annotations":{"example.com/changed":"false"}}}`)
	by(types.ApplyPatchType, `{"apiVersion":"v1","kind":"Node","metadata":{"name":"node-3","annotations":{"example.com/applied":"true"}}}`)
	owned, err := j.OwnsAnnotations(t.Context(), "node-3", append(keys, "example.com/absent"))
	require.NoError(t, err)
	require.Equal(t, []string{"example.com/ours"}, owned)
}

// TestAnAnnotationIsSetByItsFieldManager, which the API server has recorded.
func TestAnAnnotationIsSetByItsFieldManager(t *testing.T) {
	client := lab.Shared(t).Client()
	j := kube.NodeWriter{Client: client}
	began := time.Now().Add(-2 * time.Second)
	manager, _, err := j.SetBy(t.Context(), "node-2", remediations.BreakGlassKey)
	require.NoError(t, err)
	require.Empty(t, manager, "nobody has set it")
	for _, by := range []string{"kubectl-annotate", "another"} {
		body := fmt.Sprintf(`{"metadata":{"annotations":{%q:"set by %s"}}}`, remediations.BreakGlassKey, by)
		_, err := client.CoreV1().Nodes().Patch(t.Context(), "node-2", types.MergePatchType, []byte(body), metav1.PatchOptions{FieldManager: by})
		require.NoError(t, err)
		manager, at, err := j.SetBy(t.Context(), "node-2", remediations.BreakGlassKey)
		require.NoError(t, err)
		require.Equal(t, by, manager)
		require.WithinRange(t, at, began, time.Now().Add(2*time.Second))
	}
	_, _, err = j.SetBy(t.Context(), "no-such-node", remediations.BreakGlassKey)
	require.ErrorIs(t, err, engine.ErrNotFound)
}

func TestTheLedgerIsSavedByCompareAndSwap(t *testing.T) {
	s := kube.LedgerStore{Client: lab.Shared(t).Client(), Namespace: metav1.NamespaceDefault, Name: "ledger-of-this-test"}
	_, _, err := s.Load(t.Context())
	require.ErrorIs(t, err, engine.ErrNotFound)
	_, err = s.Save(t.Context(), map[string]string{"v": "1"}, "77")
	require.ErrorIs(t, err, engine.ErrNotFound, "it was deleted since it was read")
	first, err := s.Save(t.Context(), map[string]string{"v": "1"}, "")
	require.NoError(t, err)
	_, err = s.Save(t.Context(), map[string]string{"v": "mine"}, "")
	require.ErrorIs(t, err, engine.ErrConflict, "somebody else created it")
	second, err := s.Save(t.Context(), map[string]string{"v": "2"}, first)
	require.NoError(t, err)
	_, err = s.Save(t.Context(), map[string]string{"v": "late"}, first)
	require.ErrorIs(t, err, engine.ErrConflict, "a leader that is none any more")
	data, version, err := s.Load(t.Context())
	require.NoError(t, err)
	require.Equal(t, second, version)
	require.Equal(t, map[string]string{"v": "2"}, data)
}

func TestLeasesAreReadOneByOneAndAllAtOnce(t *testing.T) {
	client := lab.Shared(t).Client()
	now := time.Now().UTC().Truncate(time.Microsecond)
	f := kube.Fleet{Client: client, Now: func() time.Time { return now }}
	_, _, err := f.Lease(t.Context(), "node-2")
	require.ErrorIs(t, err, engine.ErrNotFound)
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: "node-2", Namespace: corev1.NamespaceNodeLease},
		Spec:       coordinationv1.LeaseSpec{RenewTime: ptr(metav1.NewMicroTime(now)), LeaseDurationSeconds: ptr(int32(40))},
	}
	_, err = client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Create(t.Context(), lease, metav1.CreateOptions{})
	require.NoError(t, err)
	renewed, duration, err := f.Lease(t.Context(), "node-2")
	require.NoError(t, err)
	require.True(t, now.Equal(renewed))
	require.Equal(t, 40*time.Second, duration)
	require.Eventually(t, func() bool { // the list is the API server's cache, which may be a moment behind
		all, err := f.Heartbeats(t.Context())
		return err == nil && all["node-2"].Duration == 40*time.Second && all["node-2"].RenewedAt.Equal(now)
	}, 5*time.Minute, 20*time.Millisecond)

	some, err := f.Leases(t.Context(), []string{"node-2", "node-1"}) // the same cache
	require.NoError(t, err)
	require.Equal(t, map[string]signs.Lease{"node-2": {ReadAt: now, RenewedAt: some["node-2"].RenewedAt, Duration: 40 * time.Second}}, some, "node-1 has none")
	require.True(t, now.Equal(some["node-2"].RenewedAt))
	cut, stop := context.WithCancel(t.Context())
	stop()
	_, err = f.Leases(cut, []string{"node-2", "node-1"})
	require.Error(t, err, "a lease that could not be read is not one that does not exist")
}

// atOnce is a writer that writes immediately.
func atOnce(client kubernetes.Interface) intake.Direct {
	return func(ctx context.Context, n *corev1.Node, annotations map[string]*string) error {
		if _, stored := client.(*fake.Clientset); !stored {
			return kube.WriteAnnotations(client)(ctx, n.Name, n.UID, annotations)
		}
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": n.UID, "annotations": annotations}})
		if err == nil {
			_, err = client.CoreV1().Nodes().Patch(ctx, n.Name, types.MergePatchType, patch, metav1.PatchOptions{})
		}
		return err
	}
}

// newIntake returns an intake on the lab's API server. It sees the Node as it is, and not as a
// cache has it.
func newIntake(t *testing.T, client kubernetes.Interface) intake.Intake {
	t.Helper()
	m, err := labels.NewMatcher(labels.MatchEqual, "remediation", "node-not-ready")
	require.NoError(t, err)
	return intake.Intake{
		Config: &remediations.Config{Kinds: []*remediations.TargetKind{&location.Kind, &sidecar.Kind}, Policies: []*remediations.Policy{{Name: "p", Mode: remediations.ModeObserve, Match: labels.Matchers{m}, Labels: []string{"node"}}}},
		Writer: atOnce(client), Now: time.Now,
		Node: func(name string) *corev1.Node {
			n, err := lab.Shared(t).Client().CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				return nil
			}
			return n
		},
	}
}

func about(node string) map[string]string {
	return map[string]string{"alertname": "A", "remediation": "node-not-ready", "node": node, "severity": "critical", "pod": "x"}
}

func TestAnAlertIsOnItsNodeWhenItIsAccepted(t *testing.T) {
	in, began := newIntake(t, lab.Shared(t).Client()), time.Now().Add(-time.Minute)
	record := func(l map[string]string, status string) intake.Result {
		result, err := in.Record(t.Context(), l, status, began)
		require.NoError(t, err)
		return result
	}
	require.Equal(t, intake.Unchanged, record(about("node-3"), "resolved"), "the end of something that nobody heard of")
	require.Empty(t, remediations.AlertsOn(node(t, "node-3").Annotations))
	require.Equal(t, intake.Accepted, record(about("node-3"), "firing"))
	on := remediations.AlertsOn(node(t, "node-3").Annotations)
	require.Len(t, on, 1)
	require.Equal(t, "firing", on[0].Status)
	require.Equal(t, map[string]string{"node": "node-3", "severity": "critical"}, on[0].Labels, "what a reader needs, not all")
	version := node(t, "node-3").ResourceVersion
	require.Equal(t, intake.Unchanged, record(about("node-3"), "firing"))
	require.Equal(t, version, node(t, "node-3").ResourceVersion, "no write at all")
	require.Equal(t, intake.Accepted, record(about("node-3"), "resolved"))
	require.Equal(t, "resolved", remediations.AlertsOn(node(t, "node-3").Annotations)[0].Status)

	for name, want := range map[string]intake.Result{
		"no-such-node": "unknown_node", "node-3; reboot": "no_target", "../node-3": "no_target", "": "no_target", strings.Repeat("n", 300): "no_target", "NODE-3": "no_target",
	} {
		require.Equal(t, want, record(about(name), "firing"), "%q", name)
	}
	other := about("node-3")
	other["remediation"] = "something-else"
	require.Equal(t, intake.NoPolicy, record(other, "firing"))
}

// podIntake does the same, and also accepts alerts about pods' sidecars.
func podIntake(t *testing.T) intake.Intake {
	t.Helper()
	return podIntakeOf(t, lab.Shared(t).Client())
}

func podIntakeOf(t *testing.T, client kubernetes.Interface) intake.Intake {
	t.Helper()
	in := newIntake(t, client)
	m, err := labels.NewMatcher(labels.MatchEqual, "remediation", "sidecar-not-ready")
	require.NoError(t, err)
	in.Config.Policies = append(in.Config.Policies, &remediations.Policy{
		Name: "sidecar-not-ready", Mode: remediations.ModeEnforce, Match: labels.Matchers{m}, Kind: remediations.KindSidecar, Labels: []string{"namespace", "pod"},
		Plan: []remediations.Step{{Name: "mark-ready", Provider: "sei", Attempts: 3}},
	})
	in.Config.Provided, in.Config.SidecarProviders = map[string]bool{"mark-ready": true}, map[string]bool{"sei": true}
	in.Carriers = map[remediations.Kind]intake.Carrier{remediations.KindSidecar: intake.OfPods(kube.Pods{Client: client}.Hosts)}
	return in
}

func aboutPod(name string) map[string]string {
	return map[string]string{
		"alertname": "SidecarNotReady", "remediation": "sidecar-not-ready", "namespace": "default", "pod": name, "severity": "warning",
		"node": "node-1", "seinode": "x",
	}
}

// createPod creates a pod that nothing runs. If node is empty, the pod is not scheduled yet.
func createPod(t *testing.T, name, node string) {
	t.Helper()
	pods, accounts := lab.Shared(t).Client().CoreV1().Pods("default"), lab.Shared(t).Client().CoreV1().ServiceAccounts("default")
	_, _ = accounts.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{}) // because the controller does not run
	_, err := pods.Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = pods.Delete(context.Background(), name, metav1.DeleteOptions{GracePeriodSeconds: ptr(int64(0))})
	})
}

// TestAPodsAlertIsOnTheNodeThatHostsIt, whatever node the alert's own labels name.
func TestAPodsAlertIsOnTheNodeThatHostsIt(t *testing.T) {
	in, began := podIntake(t), time.Now().Add(-time.Minute)
	createPod(t, "inbox-0", "node-9")
	createPod(t, "inbox-1", "")
	createPod(t, "inbox-2", "no-such-node")
	record := func(l map[string]string, status string) intake.Result {
		result, err := in.Record(t.Context(), l, status, began)
		require.NoError(t, err)
		return result
	}
	require.Equal(t, intake.Unchanged, record(aboutPod("inbox-0"), "resolved"), "the end of something that nobody heard of")
	require.Equal(t, intake.Accepted, record(aboutPod("inbox-0"), "firing"))
	on := remediations.AlertsOn(node(t, "node-9").Annotations)
	require.Len(t, on, 1)
	require.Equal(t, "sidecar-not-ready", on[0].Policy)
	require.Equal(t, map[string]string{"namespace": "default", "pod": "inbox-0", "severity": "warning"}, on[0].Labels)
	require.Empty(t, remediations.AlertsOn(node(t, "node-1").Annotations), "a label is no place")
	version := node(t, "node-9").ResourceVersion
	require.Equal(t, intake.Unchanged, record(aboutPod("inbox-0"), "firing"))
	require.Equal(t, version, node(t, "node-9").ResourceVersion, "no write at all")
	require.Equal(t, intake.Accepted, record(aboutPod("inbox-0"), "resolved"))

	require.Equal(t, intake.UnknownPod, record(aboutPod("no-such-pod"), "firing"))
	require.Equal(t, intake.UnknownPod, record(aboutPod("inbox-1"), "firing"), "nobody hosts it yet")
	require.Equal(t, intake.UnknownNode, record(aboutPod("inbox-2"), "firing"))
	for _, name := range []string{"", "../inbox-0", "inbox-0; reboot", "INBOX-0", strings.Repeat("p", 300)} {
		require.Equal(t, intake.NoTarget, record(aboutPod(name), "firing"), "%q", name)
	}
	elsewhere := aboutPod("inbox-0")
	elsewhere["namespace"] = "kube-system"
	require.Equal(t, intake.UnknownPod, record(elsewhere, "firing"))
	elsewhere["namespace"] = "a/b"
	require.Equal(t, intake.NoTarget, record(elsewhere, "firing"))

	// If no provider of sidecars is configured, Drydock may not read pods: no policy takes the
	// alert.
	in.Carriers, in.Config.SidecarProviders = nil, nil
	require.Equal(t, intake.NoPolicy, record(aboutPod("inbox-0"), "firing"))
}

// TestAPodThatCannotBeLookedUpIsAnError: the caller gets the error, as after a failed write, and
// sends the alert again.
func TestAPodThatCannotBeLookedUpIsAnError(t *testing.T) {
	in := podIntake(t)
	gone := errors.New("the API server does not answer")
	in.Carriers[remediations.KindSidecar] = func(context.Context, string, string) (string, error) { return "node-10", gone }
	result, err := in.Record(t.Context(), aboutPod("inbox-9"), "firing", time.Now())
	require.ErrorIs(t, err, gone)
	require.Empty(t, result)
	require.Empty(t, remediations.AlertsOn(node(t, "node-10").Annotations))

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	in.Carriers[remediations.KindSidecar] = intake.OfPods(kube.Pods{Client: lab.Shared(t).Client()}.Hosts)
	_, err = in.Record(ctx, aboutPod("inbox-9"), "firing", time.Now())
	require.ErrorContains(t, err, "which node hosts pod default/inbox-9")
}

// TestALocationsAlertIsOnTheNodeThatLeadsIt, or on the node that has a running repair of the
// leader.
func TestALocationsAlertIsOnTheNodeThatLeadsIt(t *testing.T) {
	in, began := newIntake(t, lab.Shared(t).Client()), time.Now().Add(-time.Minute)
	m, err := labels.NewMatcher(labels.MatchEqual, "remediation", "mesh-leader-degraded")
	require.NoError(t, err)
	in.Config.Policies = append(in.Config.Policies, &remediations.Policy{
		Name: "mesh-leader-degraded", Mode: remediations.ModeEnforce, Match: labels.Matchers{m}, Kind: remediations.KindLocation, Labels: []string{"location"},
		Plan: []remediations.Step{{Name: "promote-leader", Attempts: 2}},
	})
	in.Config.Provided = map[string]bool{"promote-leader": true}
	leads := map[string]string{"fra1": "node-11", "lost": "no-such-node"}
	cached := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	in.Carriers = map[remediations.Kind]intake.Carrier{
		remediations.KindLocation: intake.OfLocations(kube.Fleet{Indexer: cached}.RepairingLocations, func(location string) string { return leads[location] }),
	}
	about := func(location string) map[string]string {
		return map[string]string{"alertname": "MeshLeaderDegraded", "remediation": "mesh-leader-degraded", "location": location, "node": "node-1"}
	}
	record := func(location, status string) intake.Result {
		result, err := in.Record(t.Context(), about(location), status, began)
		require.NoError(t, err)
		return result
	}
	require.Equal(t, intake.Unchanged, record("fra1", "resolved"), "the end of something that nobody heard of")
	require.Equal(t, intake.Accepted, record("fra1", "firing"))
	on := remediations.AlertsOn(node(t, "node-11").Annotations)
	require.Len(t, on, 1)
	require.Equal(t, map[string]string{"location": "fra1"}, on[0].Labels)
	require.Empty(t, remediations.AlertsOn(node(t, "node-1").Annotations), "a label is no place")
	leads["fra1"] = "node-1"
	repaired := node(t, "node-11")
	repaired.Annotations[remediations.LocationKey] = locationRecord("Pending")
	require.NoError(t, cached.Add(repaired))
	require.Equal(t, intake.Accepted, record("fra1", "resolved"), "the repair that moved it is told of its end")
	require.Equal(t, "resolved", remediations.AlertsOn(node(t, "node-11").Annotations)[0].Status)
	require.NoError(t, cached.Delete(repaired))
	require.Equal(t, intake.UnknownLocation, record("nowhere", "firing"))
	require.Equal(t, intake.UnknownNode, record("lost", "firing"))
	require.Equal(t, intake.NoTarget, record("", "firing"))
	in.Carriers = nil
	require.Equal(t, intake.UnknownLocation, record("fra1", "firing"), "no mesh is configured")
}

// locationRecord returns the record of a repair of a location's leader.
func locationRecord(phase string) string {
	return fmt.Sprintf(`{"v":1,"id":"aaaaaa","policy":"p","cause":{"alert":"9f2c0e5b6d1a4c33"},"location":"fra1","phase":%q,"step":{"index":0,"name":"promote-leader","attempt":1},`+
		`"began":"2026-01-01T00:00:00Z","since":"2026-01-01T00:00:00Z","deadline":"2026-01-02T00:00:00Z"}`, phase)
}

// TestTheCarrierIsWhoseRepairIsUnderWay: an exhausted repair waits for a person, so the present
// leader gets the alert.
func TestTheCarrierIsWhoseRepairIsUnderWay(t *testing.T) {
	key := remediations.AlertPrefix + "9f2c0e5b6d1a4c33"
	for name, c := range map[string]struct {
		annotations map[string]string
		want        string
	}{
		"under way":      {map[string]string{key: "{}", remediations.LocationKey: locationRecord("Pending")}, "n1"},
		"exhausted":      {map[string]string{key: "{}", remediations.LocationKey: locationRecord("Exhausted")}, ""},
		"unreadable":     {map[string]string{key: "{}", remediations.LocationKey: "{}"}, ""},
		"only the alert": {map[string]string{key: "{}"}, ""},
		"another alert":  {map[string]string{key + "0": "{}", remediations.LocationKey: locationRecord("Pending")}, ""},
	} {
		indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
		require.NoError(t, indexer.Add(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Annotations: c.annotations}}))
		node, err := intake.OfLocations(kube.Fleet{Indexer: indexer}.RepairingLocations, func(string) string { return "" })(t.Context(), key, "fra1")
		require.NoError(t, err)
		require.Equal(t, c.want, node, name)
	}
}

func TestANodeThatIsFullRefusesOneMoreAndSaysSo(t *testing.T) {
	in := newIntake(t, lab.Shared(t).Client())
	var full []string
	in.Full = func(n string) { full = append(full, n) }
	record := func(i int, status string) intake.Result {
		l := about("node-4")
		l["alertname"] = fmt.Sprint("A", i)
		result, err := in.Record(t.Context(), l, status, time.Now())
		require.NoError(t, err)
		return result
	}
	for i := range remediations.MaxAlertsPerNode {
		require.Equal(t, intake.Accepted, record(i, "firing"))
	}
	require.Equal(t, intake.NodeFull, record(100, "firing"))
	require.Equal(t, []string{"node-4"}, full)
	require.Equal(t, intake.Accepted, record(7, "resolved"))
	require.Equal(t, intake.Accepted, record(100, "firing"), "a resolved one made room")
	require.Len(t, remediations.AlertsOn(node(t, "node-4").Annotations), remediations.MaxAlertsPerNode)
}

// TestAWriteIsTriedAgainUntilTheAPIServerAnswers: the alert was accepted, and is written when the
// API server is back.
func TestAWriteIsTriedAgainUntilTheAPIServerAnswers(t *testing.T) {
	l := lab.Shared(t)
	proxy, err := l.NewProxy()
	require.NoError(t, err)
	t.Cleanup(proxy.Close)
	file, err := l.ServiceAccountKubeconfig(t.Context(), "kube-system", "writer", proxy.URL())
	require.NoError(t, err)
	require.NoError(t, l.Apply(t.Context(), []byte(`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"writer"},
		"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"cluster-admin"},"subjects":[{"kind":"ServiceAccount","name":"writer","namespace":"kube-system"}]}`)))
	config, err := clientcmd.BuildConfigFromFlags("", file)
	require.NoError(t, err)
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	queue, err := intake.NewQueue(kube.WriteAnnotations(client), clock.RealClock{}, prometheus.NewRegistry(), logr.Discard())
	require.NoError(t, err)
	in := newIntake(t, client)
	in.Writer = queue
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- queue.Start(ctx) }()

	var failures atomic.Int32
	proxy.Before(func(r *http.Request) lab.Verdict {
		if r.Method == http.MethodPatch && failures.Add(1) <= 2 {
			return lab.Reset
		}
		return lab.Pass
	})
	result, err := in.Record(t.Context(), about("node-5"), "firing", time.Now())
	require.NoError(t, err)
	require.Equal(t, intake.Accepted, result)
	require.Eventually(t, func() bool { return len(remediations.AlertsOn(node(t, "node-5").Annotations)) == 1 }, 5*time.Minute, 20*time.Millisecond)
	require.EqualValues(t, 3, failures.Load())
	stop()
	require.NoError(t, <-ended)
	_, err = in.Record(t.Context(), about("node-6"), "firing", time.Now())
	require.ErrorContains(t, err, "stopping", "nobody would write it")
	require.Empty(t, remediations.AlertsOn(node(t, "node-6").Annotations))
}

func TestTrimKeepsWhatDecisionsRestOn(t *testing.T) {
	n := node(t, "node-7")
	n.Annotations = map[string]string{"a.cni/s": strings.Repeat("x", 1000), "example.com/frozen": strings.Repeat("y", 1000), remediations.HistoryKey: "[]", remediations.PauseKey: "true"}
	n.Status.Images = []corev1.ContainerImage{{Names: []string{"image"}}}
	small := kube.Trim(n)
	require.Equal(t, map[string]string{remediations.HistoryKey: "[]", remediations.PauseKey: "true"}, small.Annotations)
	kept := kube.Trim(n, "example.com/frozen", "example.com/absent")
	require.Equal(t, map[string]string{remediations.HistoryKey: "[]", remediations.PauseKey: "true", "example.com/frozen": strings.Repeat("y", 256)}, kept.Annotations)
	require.Empty(t, small.Status.Images)
	require.Empty(t, small.ManagedFields)
	require.Equal(t, n.Status.NodeInfo.BootID, small.Status.NodeInfo.BootID)
	require.NotEmpty(t, n.Status.NodeInfo.SystemUUID)
	require.Equal(t, n.Status.NodeInfo.SystemUUID, small.Status.NodeInfo.SystemUUID, "a BMC is held against it")
	require.Equal(t, n.Spec.ProviderID, small.Spec.ProviderID)
	require.Equal(t, n.UID, small.UID)
	require.NotNil(t, remediations.ReadyCondition(small))
}

// TestTrimKeepsWhatKilosElectionRestsOn: exactly those of Kilo's annotations that
// remediations/providers/kilo/election reads.
func TestTrimKeepsWhatKilosElectionRestsOn(t *testing.T) {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Annotations: map[string]string{"kilo.squat.ai/discovered-endpoints": "{}"}}, Spec: corev1.NodeSpec{PodCIDR: "10.42.0.0/24"}}
	want := map[string]string{}
	for k, v := range map[string]string{
		election.LeaderKey: "", election.LocationKey: "fra1", election.EndpointKey: "203.0.113.1:51820", election.ForceEndpointKey: "203.0.113.2:51820",
		election.InternalIPKey: "10.0.0.1/24", election.ForceInternalIPKey: "10.0.0.2/24", election.PublicKeyKey: "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=",
		election.LastSeenKey: "1", election.WireGuardIPKey: "10.4.0.1/16", election.GranularityKey: "location", election.KeepaliveKey: "10",
	} {
		n.Annotations[k], want[k] = v, v
	}
	small := kube.Trim(n)
	require.Equal(t, want, small.Annotations)
	require.Equal(t, election.Read(n, "region"), election.Read(small, "region"))
	require.Empty(t, election.Read(small, "region").NotReady(time.Unix(2, 0)))
}

func TestOnlyWhatCouldChangeADecisionMatters(t *testing.T) {
	base := kube.Trim(node(t, "node-8"))
	for what, change := range map[string]func(*corev1.Node){
		"a word of a person":  func(n *corev1.Node) { n.Annotations = map[string]string{remediations.PauseKey: "true"} },
		"readiness":           func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown },
		"no readiness at all": func(n *corev1.Node) { n.Status.Conditions = nil },
		"a boot":              func(n *corev1.Node) { n.Status.NodeInfo.BootID = "another" },
		"a cordon":            func(n *corev1.Node) { n.Spec.Unschedulable = true },
		"a taint":             func(n *corev1.Node) { n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "k"}) },
		"another taint":       func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "karpenter.sh/disrupted"}} },
		"a label":             func(n *corev1.Node) { n.Labels = map[string]string{} },
		"its deletion":        func(n *corev1.Node) { n.DeletionTimestamp = ptr(metav1.Now()) },
		"a pod CIDR":          func(n *corev1.Node) { n.Spec.PodCIDR = "10.42.9.0/24" },
		"a mesh leader": func(n *corev1.Node) {
			n.Annotations = map[string]string{election.LeaderKey: "", election.LastSeenKey: "2"}
		},
		"another mesh key": func(n *corev1.Node) { n.Annotations = map[string]string{election.PublicKeyKey: "k"} },
		"another machine":  func(n *corev1.Node) { n.Spec.ProviderID = "civo://another" },
	} {
		one, other := base.DeepCopy(), base.DeepCopy()
		if what == "another taint" {
			one.Spec.Taints = []corev1.Taint{{Key: "k"}}
		}
		change(other)
		require.True(t, kube.Matters(one, other), what)
	}
	beat := base.DeepCopy()
	beat.ResourceVersion = "9"
	beat.Status.Conditions[0].LastHeartbeatTime = metav1.Now()
	require.False(t, kube.Matters(base, beat), "a heartbeat")
	beat.Annotations = map[string]string{election.LastSeenKey: "1"}
	require.False(t, kube.Matters(base, beat), "Kilo's first")
	again := beat.DeepCopy()
	again.Annotations[election.LastSeenKey] = "2"
	require.False(t, kube.Matters(beat, again), "Kilo's next")
	require.False(t, kube.Matters(again, base), "Kilo's last")
}
