package sidecars

import (
	"fmt"
	"maps"
	"net/http"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/lab/sidecarsim"
	"drydock.dev/drydock/remediations"
)

// S0-1, S0-6, S0-8 to S0-10: the main job, from the deletion of the pod to the end of its alert.
func TestAReplacedPodsSidecarIsMarkedReady(t *testing.T) {
	y := newYard(t)
	y.run(lab.DrydockOptions{})
	rpc := y.add("node-1", "rpc")[0]
	var intent *remediations.Intent
	var seen sync.Mutex
	y.sidecars.On(sidecarsim.Submit, func(sidecarsim.Call) {
		if r := y.record("node-1", rpc); r != nil {
			seen.Lock()
			defer seen.Unlock()
			intent = r.Intent
		}
	})
	begun := time.Now()
	y.replace(rpc)
	y.fired(rpc)
	alerted := time.Now()
	y.opens(rpc)
	t.Logf("alert %s after the deletion, ready %s after the alert", alerted.Sub(begun), time.Since(alerted))

	posts := y.answered(rpc, 1)
	require.Equal(t, http.StatusCreated, posts[0].Status)
	require.Equal(t, account, posts[0].User)
	require.Empty(t, posts[0].RemoteUser)
	require.NoError(t, uuid.Validate(posts[0].TaskID))
	seen.Lock()
	require.NotNil(t, intent, "what is about to be done is on the record before it is done")
	require.Equal(t, posts[0].TaskID, intent.Task)
	seen.Unlock()
	for _, c := range y.sidecars.CallsTo(rpc.Pod(), sidecarsim.Health) {
		require.False(t, c.Token, "the token goes with an approval, and with nothing else")
	}

	entry := y.ended("node-1", rpc, 1)[0]
	require.Equal(t, remediations.OutcomeRecovered, entry.Outcome)
	require.Equal(t, []string{"mark-ready:1"}, entry.Steps.Texts())
	require.Nil(t, y.record("node-1", rpc), "there is a record only while something is done")
	y.awaitAlert(rpc, false)
	for _, object := range []string{"Pod/rpc-0", "SeiNode/rpc"} {
		y.awaitEvent(object, "SidecarReadinessLost", "")
		y.awaitEvent(object, "SidecarReadinessRestored", "")
	}
	y.untouched("node-1")

	// The next post needs another ID, because the volume remembers the first one for ever.
	y.replace(rpc)
	y.opens(rpc)
	posts = y.answered(rpc, 2)
	require.NotEqual(t, posts[0].TaskID, posts[1].TaskID)
	y.ended("node-1", rpc, 2)
}

// untouched asserts that only Drydock's own keys have changed on the node.
func (y *yard) untouched(node string) {
	y.t.Helper()
	n := y.node(node)
	require.False(y.t, n.Spec.Unschedulable, "a sidecar is no reason to cordon its node")
	require.Empty(y.t, n.Spec.Taints)
	require.NotContains(y.t, n.Labels, remediations.PhaseLabel)
}

// S0-4, S0-5, S0-16 and other signs that a person closed the gate: Drydock posts nothing while
// there is such a sign. A sign that has ended holds nothing.
func TestAHeldSidecarIsLeftAloneUntilItsHoldEnds(t *testing.T) {
	y := newYard(t)
	y.run(lab.DrydockOptions{})
	type change struct{ spec, status map[string]any }
	holds := map[string]struct{ begin, end change }{
		"initializing": {change{status: map[string]any{"phase": "Initializing"}}, change{status: map[string]any{"phase": "Running"}}},
		"paused":       {change{spec: map[string]any{"paused": true}}, change{spec: map[string]any{"paused": nil}}},
		"planned":      {change{status: map[string]any{"plan": map[string]any{"id": "p", "phase": "Active"}}}, change{status: map[string]any{"plan": map[string]any{"id": "p", "phase": "Complete"}}}},
		"workflow":     {change{status: map[string]any{"adoptedWorkflow": map[string]any{"name": "statesync"}}}, change{status: map[string]any{"adoptedWorkflow": nil}}},
		"drift":        {change{spec: map[string]any{"image": "sei.example/seid:v6.4.0"}}, change{spec: map[string]any{"image": lab.SeidImage}}},
	}
	apply := func(name string, c change) {
		if c.spec != nil {
			require.NoError(t, y.sidecars.PatchSeiNode(t.Context(), y.ns, name, c.spec))
		}
		if c.status != nil {
			y.status(lab.SeiNodeSpec{Name: name}, c.status)
		}
	}
	free := y.add("node-1", "free")[0]
	held := map[string]lab.SeiNodeSpec{}
	for name, hold := range holds {
		held[name] = y.add("node-1", name)[0]
		apply(name, hold.begin)
		y.replace(held[name])
	}
	// The sidecar is held on purpose, and only its workflow shows that: a mark-not-ready differs
	// from other 503 answers.
	require.NoError(t, y.sidecars.Post(t.Context(), held["workflow"].Pod(), sidecarsim.MarkNotReady))
	for name, spec := range held {
		y.awaitAlert(spec, true)
		y.awaitEvent("Pod/"+name+"-0", "RepairHeld", string(remediations.ReasonSidecarHeld))
	}
	y.replace(free)
	y.opens(free)
	for name, spec := range held {
		require.Empty(t, y.posted(spec), name)
		require.Nil(t, y.record("node-1", spec), "what is held is not written")
	}
	for name, hold := range holds {
		apply(name, hold.end)
	}
	y.opens(slices.Collect(maps.Values(held))...)
	for name, spec := range held {
		require.Len(t, y.posted(spec), 1, name)
	}
	y.untouched("node-1")
}

// apart is the shortest time between two posts. Their intents are 30 s apart, in whole seconds, and
// a post may leave up to 10 s after its own intent.
const apart = 19 * time.Second

// TestAGateClosedByHandIsLeftAlone: no SeiNode shows that it is held, but its container has run for
// an hour. When the container is restarted, nothing holds it any more.
func TestAGateClosedByHandIsLeftAlone(t *testing.T) {
	y := newYard(t)
	y.run(lab.DrydockOptions{})
	spec := y.add("node-1", "by-hand")[0]
	startedAt := func(at time.Time) {
		pods := y.lab.Client().CoreV1().Pods(y.ns)
		pod, err := pods.Get(t.Context(), "by-hand-0", metav1.GetOptions{})
		require.NoError(t, err)
		for i := range pod.Status.ContainerStatuses {
			pod.Status.ContainerStatuses[i].State.Running.StartedAt = metav1.NewTime(at)
		}
		_, err = pods.UpdateStatus(t.Context(), pod, metav1.UpdateOptions{})
		require.NoError(t, err)
	}
	startedAt(time.Now().Add(-time.Hour))
	require.NoError(t, y.sidecars.Post(t.Context(), spec.Pod(), sidecarsim.MarkNotReady))
	y.awaitAlert(spec, true)
	y.awaitEvent("Pod/by-hand-0", "RepairHeld", string(remediations.ReasonSidecarHeld))
	require.Empty(t, y.posted(spec))
	require.NoError(t, y.sidecars.Restart(spec.Pod())) // first, because a post before the restart would be one more post
	startedAt(time.Now())
	y.opens(spec)
	require.Len(t, y.posted(spec), 1)
	y.untouched("node-1")
}

// S0-2, S0-3: Drydock acts only on the answer 503, whatever the alert says at that time.
func TestASidecarThatAnswersOtherThan503IsLeftAlone(t *testing.T) {
	y := newYard(t)
	odd := map[string]sidecarsim.Fault{
		"hangs": sidecarsim.Hang(), "cut": sidecarsim.Cut(), "error": sidecarsim.Answer(500, nil), "gateway": sidecarsim.Answer(502, nil),
		"lost": sidecarsim.Answer(404, nil), "elsewhere": sidecarsim.Redirect("http://127.0.0.1:1/"), "torn": sidecarsim.Torn(500),
	}
	specs := map[string]lab.SeiNodeSpec{}
	for name := range odd {
		specs[name] = y.add("node-2", name)[0]
	}
	free := y.add("node-2", "free")[0]
	// No rule fires for these states. Such an alert comes late, or from another source.
	for name, fault := range odd {
		y.sidecars.Inject(specs[name].Pod(), sidecarsim.Health, fault)
		y.replace(specs[name])
		y.fire(specs[name], "node-2")
	}
	y.run(lab.DrydockOptions{})
	for name := range odd {
		y.awaitEvent("Pod/"+name+"-0", "RepairHeld", string(remediations.ReasonSidecarUnknown))
	}
	y.replace(free)
	y.opens(free)
	for name, spec := range specs {
		require.Empty(t, y.posted(spec), name)
		require.Nil(t, y.record("node-2", spec), name)
	}
}

// fire posts the alert to Alertmanager as Prometheus would. It lasts for minutes.
func (y *yard) fire(spec lab.SeiNodeSpec, node string) {
	y.t.Helper()
	labels := map[string]string{
		"alertname": "SidecarNotReady", "namespace": y.ns, "pod": spec.Name + "-0", "seinode": spec.Name, "node": node,
		"severity": "warning", "remediation": "sidecar-not-ready",
	}
	post := func(end time.Time) {
		y.request(http.MethodPost, y.lab.AlertmanagerURLs()[0]+"/api/v2/alerts", []any{map[string]any{
			"labels": labels, "startsAt": time.Now().Add(-time.Minute), "endsAt": end,
		}}, nil)
	}
	post(time.Now().Add(10 * time.Minute))
	y.t.Cleanup(func() { post(time.Now()) })
}

// Drydock makes three attempts, at least 30 s apart, each with an ID of its own. Then a person must
// act. Nothing is restarted or cordoned.
func TestAWedgedSidecarIsTriedThreeTimesAndLeftToAPerson(t *testing.T) {
	y := newYard(t)
	y.run(lab.DrydockOptions{Config: map[string]any{"policies": quick(nil)}})
	wedged := y.add("node-3", "wedged")[0]
	y.sidecars.Inject(wedged.Pod(), sidecarsim.Submit, sidecarsim.Wedged())
	y.replace(wedged)
	require.Eventually(t, func() bool {
		r := y.record("node-3", wedged)
		return r != nil && r.Phase == remediations.PhaseExhausted
	}, lab.Patience, 500*time.Millisecond)
	posts, ids := y.answered(wedged, 3), map[string]bool{}
	for i, p := range posts {
		ids[p.TaskID] = true
		if i > 0 {
			require.GreaterOrEqual(t, p.At.Sub(posts[i-1].At), apart)
		}
	}
	require.Len(t, ids, 3)
	y.awaitEvent("Pod/wedged-0", "RepairExhausted", "")
	y.untouched("node-3")
	pod, runs := y.sidecars.Pod(wedged.Pod())
	require.True(t, runs)
	require.Equal(t, posts[0].Pod.UID, pod.UID, "and its pod is the one that it was")
}

// A node reboots, and all of its sidecars wait. They are approved one after the other, within one
// alert. The held one is left alone all the time.
func TestThirtySidecarsOfARebootedNodeAreUpAgainInOneAlertCycle(t *testing.T) {
	y := newYard(t)
	y.run(lab.DrydockOptions{})
	names := make([]string, 30)
	for i := range names {
		names[i] = fmt.Sprintf("n%02d", i)
	}
	specs, held := y.add("node-1", names...), y.add("node-1", "held")[0]
	y.status(held, map[string]any{"adoptedWorkflow": map[string]any{"name": "statesync"}})
	require.NoError(t, y.sidecars.Post(t.Context(), held.Pod(), sidecarsim.MarkNotReady))
	y.awaitAlert(held, true)

	begun := time.Now()
	require.Len(t, y.sidecars.RestartOn("node-1"), 31)
	y.fired(specs[0])
	alerted := time.Now()
	y.opens(specs...)
	t.Logf("first alert after %s; thirty ready %s after it", alerted.Sub(begun), time.Since(alerted))
	ids := map[string]bool{}
	for _, spec := range specs {
		posts := y.posted(spec)
		require.Len(t, posts, 1, spec.Name)
		ids[posts[0].TaskID] = true
	}
	require.Len(t, ids, 30)
	for _, spec := range specs {
		y.awaitAlert(spec, false)
	}
	require.Empty(t, y.posted(held))
	require.False(t, y.sidecars.Ready(held.Pod()))
	y.untouched("node-1")
}

// A silence holds Drydock, and Drydock continues when the silence ends. `kubectl drydock why` names
// who made the silence.
func TestASilencedSidecarWaits(t *testing.T) {
	y := newYard(t)
	d := y.run(lab.DrydockOptions{})
	rpc, free := y.add("node-2", "rpc")[0], y.add("node-2", "free")[0]
	expire := y.silence("rpc-0")
	y.replace(rpc)
	y.awaitAlert(rpc, true)
	y.replace(free)
	y.opens(free)
	require.Empty(t, y.posted(rpc))
	plugin, err := y.lab.PluginProgram(t.Context())
	require.NoError(t, err)
	why := exec.CommandContext(t.Context(), plugin, "--kubeconfig", y.lab.AdminKubeconfig(), "why", "node-2", "--config", d.ConfigFile, "--alertmanager", y.lab.AlertmanagerURLs()[0])
	said, _ := why.CombinedOutput()
	require.Equal(t, 3, why.ProcessState.ExitCode(), "%s", said)
	require.Contains(t, string(said), "node-2 ("+rpc.Pod()+") is not repaired: Silenced holds it")
	require.Regexp(t, `Silenced +HOLDS +.*ann \(a hold by hand\)`, string(said))
	require.Regexp(t, `SidecarUnknown +not seen +not asked from here: `, string(said))
	expire()
	y.opens(rpc)
	require.Len(t, y.posted(rpc), 1)
}

// killedAtPost replaces the sidecar's pod, and kills Drydock when the new sidecar has done what was
// requested, before it answers.
func (y *yard) killedAtPost(d *lab.Drydock, spec lab.SeiNodeSpec) {
	y.t.Helper()
	y.sidecars.On(sidecarsim.Submit, func(c sidecarsim.Call) {
		if c.Pod.Key() == spec.Pod() {
			d.Kill()
		}
	})
	y.replace(spec)
	y.accepts(spec)
	lab.AwaitEnd(y.t, d.Process)
	y.sidecars.On(sidecarsim.Submit, nil)
}

// Drydock is killed after the post and before its answer. The gate is open, and Drydock does not
// post again.
func TestACrashAfterThePostPostsNothingTwice(t *testing.T) {
	y := newYard(t)
	d := y.run(lab.DrydockOptions{})
	rpc := y.add("node-3", "rpc")[0]
	y.killedAtPost(d, rpc)
	require.True(t, y.sidecars.Ready(rpc.Pod()))
	require.NoError(t, y.lab.Restart(t.Context(), d))
	require.Equal(t, remediations.OutcomeRecovered, y.ended("node-3", rpc, 1)[0].Outcome)
	require.Len(t, y.posted(rpc), 1)
}

// The same, but the gate did not open. The next attempt has another ID.
func TestACrashBeforeTheGateOpensEndsInANewAttempt(t *testing.T) {
	y := newYard(t)
	d := y.run(lab.DrydockOptions{Config: map[string]any{"policies": quick(nil)}})
	rpc := y.add("node-3", "rpc")[0]
	y.sidecars.InjectNext(rpc.Pod(), sidecarsim.Submit, 1, sidecarsim.Wedged())
	y.killedAtPost(d, rpc)
	require.False(t, y.sidecars.Ready(rpc.Pod()))
	require.NoError(t, y.lab.Restart(t.Context(), d))
	y.opens(rpc)
	posts := y.answered(rpc, 2)
	require.NotEqual(t, posts[0].TaskID, posts[1].TaskID)
	require.GreaterOrEqual(t, posts[1].At.Sub(posts[0].At), apart)
	require.Equal(t, []string{"mark-ready:1", "mark-ready:2"}, y.ended("node-3", rpc, 1)[0].Steps.Texts())
}

// If a pod moves while its sidecar is under repair, a new repair begins on the new node.
func TestAMovedPodStartsAgain(t *testing.T) {
	y := newYard(t)
	y.run(lab.DrydockOptions{})
	rpc := y.add("node-1", "rpc")[0]
	y.sidecars.InjectNext(rpc.Pod(), sidecarsim.Submit, 1, sidecarsim.Wedged())
	y.replace(rpc)
	y.accepts(rpc)
	_, err := y.sidecars.MovePod(t.Context(), rpc, "node-2")
	require.NoError(t, err)
	y.opens(rpc)
	require.Equal(t, remediations.OutcomeSuperseded, y.ended("node-1", rpc, 1)[0].Outcome)
	entry := y.ended("node-2", rpc, 1)[0]
	require.Equal(t, remediations.OutcomeRecovered, entry.Outcome)
	require.Equal(t, []string{"mark-ready:1"}, entry.Steps.Texts())
	require.Nil(t, y.record("node-1", rpc))
}

// The proxy refuses at first. The answers 401, 403 and 500 are failed attempts, and no reason to
// give up at once.
func TestARefusalIsTriedAgain(t *testing.T) {
	y := newYard(t)
	y.run(lab.DrydockOptions{Config: map[string]any{"policies": quick(nil)}})
	rpc := y.add("node-2", "rpc")[0]
	y.sidecars.InjectNext(rpc.Pod(), sidecarsim.Submit, 1, sidecarsim.Forbidden())
	y.replace(rpc)
	y.opens(rpc)
	posts := y.answered(rpc, 2)
	require.Equal(t, 403, posts[0].Status)
	require.GreaterOrEqual(t, posts[1].At.Sub(posts[0].At), apart)
	require.NotEqual(t, posts[0].TaskID, posts[1].TaskID)
}

// With `via: seinodetask`, Sei's controller approves the sidecar, and Drydock's own token goes to
// no pod.
func TestASeiNodeTaskDoesItWithoutHTTP(t *testing.T) {
	y := newYard(t)
	viaTask := map[string]any{"sidecars": []any{map[string]any{"name": "sei", "via": "seinodetask"}}}
	require.NoError(t, y.lab.InstallChart(t.Context(), "tasks", "tasks", map[string]any{
		"admission": map[string]any{"policy": map[string]any{"enabled": false}},
		"config":    map[string]any{"providers": viaTask},
	}))
	y.run(lab.DrydockOptions{Name: "tasks", Namespace: "tasks", Config: map[string]any{"providers": viaTask}})
	rpc := y.add("node-1", "rpc")[0]
	y.replace(rpc)
	y.opens(rpc)
	require.Empty(t, y.posted(rpc))
	done := y.sidecars.Done(rpc.Pod())
	require.Len(t, done, 1)
	require.Equal(t, lab.SeiController, done[0].User)
	require.Equal(t, remediations.OutcomeRecovered, y.ended("node-1", rpc, 1)[0].Outcome)
}

// In observe mode Drydock reports what it would do, and does nothing.
func TestInObserveModeNothingIsPosted(t *testing.T) {
	y := newYard(t)
	y.run(lab.DrydockOptions{Config: map[string]any{"mode": "observe"}})
	rpc := y.add("node-1", "rpc")[0]
	y.replace(rpc)
	y.awaitEvent("Pod/rpc-0", "RepairHeld", string(remediations.ReasonObserving))
	require.Empty(t, y.posted(rpc))
	r := y.record("node-1", rpc)
	require.NotNil(t, r, "what would be done is on record")
	require.Equal(t, remediations.ReasonObserving, r.Hold.Reason)
	require.Nil(t, r.Intent)
}
