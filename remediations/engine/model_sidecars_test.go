package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/alertmanager/pkg/labels"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/targets/sidecar"
)

// gated is a pod whose main container waits behind a sidecar. The gate is in the memory of the
// sidecar's process. The IDs of earlier tasks are on the pod's volume, and outlive the process.
type gated struct {
	name, uid, node string
	open            bool
	// since is when the gate last changed. moved is when the pod came to its node.
	since, moved time.Time
	// started is when its process started. byHand means that a person closed the gate, and the
	// process continued to run.
	started time.Time
	byHand  bool
	tasks   map[string]bool
	// held is why its owner keeps it as it is, and heldSince is since when. hidden means that it
	// does not answer. failing means that it answers 500.
	held            string
	heldSince       time.Time
	hidden, failing bool
	hiddenSince     time.Time
	// wedged means that no task opens it. forgets means that it runs a known task again.
	wedged, forgets bool
	// silenced and inhibited are states of its alert. quiet means that its alert is not sent.
	silenced, inhibited, quiet bool
	// lapsed is when the alert began again after its source had paused. It is zero if the source
	// has not paused.
	lapsed time.Time
}

// approval is an approval that reached a sidecar.
type approval struct {
	pod, uid, node, task, intent string
	at                           time.Time
	by                           *instance
	lost                         bool // the store went back to its state before this
}

// gates is the world's state of sidecars.
type gates struct {
	pods map[string]*gated
	// mood is how sidecars treat approvals. lookTakes is how long a look takes. hostsHang means
	// that the API server does not answer where pods run.
	mood      providerMood
	lookTakes time.Duration
	hostsHang bool
	hostsAsks int
	looking   int // concurrent looks at sidecars
	approvals []approval
	ended     []remediations.Entry
	// intents are the written intents, by repair. tasks are the tasks named in an intent.
	intents map[string][]time.Time
	tasks   map[string]string
	uids    int
	most    int // the most sidecars under repair at the same time
	cancels int
	// blindly means that the port of sidecars does not look again before it approves.
	blindly bool
}

const sidecarPolicy = "sidecar-not-ready"

// sidecarConfig has the policy about sidecars in addition to the policy about nodes.
func sidecarConfig() *remediations.Config { return withSidecars(modelConfig()) }

func withSidecars(c *remediations.Config) *remediations.Config {
	match, err := labels.NewMatcher(labels.MatchEqual, "remediation", sidecarPolicy)
	if err != nil {
		panic(err)
	}
	c.Policies = append(c.Policies, &remediations.Policy{
		Name: sidecarPolicy, Match: labels.Matchers{match}, Kind: remediations.KindSidecar, Labels: []string{"namespace", "pod"},
		Mode: remediations.ModeEnforce, RepairCordoned: true,
		Plan: []remediations.Step{{Name: "mark-ready", Provider: "sei", Wait: time.Minute, Attempts: 3}},
	})
	c.Provided["mark-ready"], c.SidecarProviders, c.Limits.Sidecars = true, map[string]bool{"sei": true}, 10
	return c
}

func podKey(name string) string {
	return remediations.SidecarKey(remediations.Pod{Namespace: "sei", Name: name})
}

func labelsOfSidecar(name string) map[string]string {
	return map[string]string{"alertname": "SidecarNotReady", "namespace": "sei", "pod": name, "remediation": sidecarPolicy}
}

// host puts a pod on the node, with its gate open.
func (w *world) host(name, node string) *gated {
	if w.gates == nil {
		w.gates = &gates{pods: map[string]*gated{}, intents: map[string][]time.Time{}, tasks: map[string]string{}}
	}
	w.gates.uids++
	g := &gated{name: name, uid: fmt.Sprintf("pod-%d", w.gates.uids), node: node, open: true, since: time.Now().Add(-time.Hour), started: time.Now().Add(-time.Hour), tasks: map[string]bool{}}
	w.gates.pods[name] = g
	return g
}

// replacePod gives the name to a new pod on the node: a new sidecar, and the old volume.
func (w *world) replacePod(name, node string) {
	if g := w.pod(name); g != nil {
		w.gates.uids++
		g.uid, g.node, g.moved = fmt.Sprintf("pod-%d", w.gates.uids), node, time.Now()
		g.close()
	}
}

// close closes the gate, as a restart does.
func (g *gated) close() {
	if g.open {
		g.open, g.since = false, time.Now()
	}
	g.started, g.byHand = time.Now(), false
}

// closeByHand closes the gate as a person does, long after the process started.
func (g *gated) closeByHand() {
	if g.open {
		g.open, g.since, g.byHand = false, time.Now(), true
		g.started = time.Now().Add(-time.Hour)
	}
}

func (g *gated) letGo() {
	if !g.open {
		g.open, g.since, g.byHand = true, time.Now(), false
	}
}

func (g *gated) hold(why string) {
	if g.held == "" && why != "" {
		g.heldSince = time.Now()
	}
	g.held = why
}

func (g *gated) hide(yes bool) {
	if !g.hidden && yes {
		g.hiddenSince = time.Now()
	}
	g.hidden = yes
}

func (w *world) pod(name string) *gated {
	if w.gates == nil {
		return nil
	}
	return w.gates.pods[name]
}

func (w *world) podNames() []string {
	if w.gates == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(w.gates.pods))
}

// closeOn closes the gates of all pods of a rebooted node.
func (w *world) closeOn(node string) {
	for _, name := range w.podNames() {
		if g := w.pod(name); g.node == node {
			g.close()
		}
	}
}

// reschedule moves the pods of a deleted node to another node.
func (w *world) reschedule(node string) {
	for _, name := range w.podNames() {
		for _, other := range slices.Sorted(maps.Keys(w.nodes)) {
			if w.pod(name).node == node && other != node {
				w.replacePod(name, other)
			}
		}
	}
}

// sidecarsSent are the alerts about sidecars, as their source sends them.
func (w *world) sidecarsSent(at time.Time) (out []sent) {
	for _, name := range w.podNames() {
		g := w.pod(name)
		if firing := !g.open || time.Since(g.since) < alertTail; firing && !g.quiet && (g.open || !g.hidden || g.hiddenSince.After(g.since)) {
			starts := g.since
			if g.lapsed.After(starts) {
				starts = g.lapsed
			}
			out = append(out, sent{labels: labelsOfSidecar(name), starts: starts, at: at, pod: g})
		}
	}
	return out
}

// postPod writes the pod's alert on the node that hosts it, as the receiver does.
func (w *world) postPod(name string) {
	g := w.pod(name)
	if g == nil || w.nodes[g.node] == nil {
		return
	}
	a := w.config.NewAlert(w.config.Policy(sidecarPolicy), labelsOfSidecar(name), remediations.StatusFiring, g.since, time.Now())
	w.edit(g.node, func(n *corev1.Node) { n.Annotations[a.Key()] = a.Encode() })
}

func (w *world) sidecarRecords() map[string]*remediations.Record {
	out := map[string]*remediations.Record{}
	for name, n := range w.nodes {
		for k, r := range modelRegistry.ReadJournal(n).Of(remediations.KindSidecar) {
			out[name+"|"+k] = r
		}
	}
	return out
}

func (w *world) sidecarsInFlight() (busy int) {
	for _, r := range w.sidecarRecords() {
		if r.Phase.InFlight() {
			busy++
		}
	}
	return busy
}

// sidecarPort is the provider of sidecars.
type sidecarPort struct{ *instance }

func (s sidecarPort) Hosts(ctx context.Context, p remediations.Pod) (string, error) {
	s.enter("hosts", false)
	s.w.mu.Lock()
	s.w.gates.hostsAsks++
	hang, g := s.w.gates.hostsHang, s.w.pod(p.Name)
	s.w.mu.Unlock()
	if hang {
		<-ctx.Done()
		return "", ctx.Err()
	}
	if g == nil {
		return "", nil
	}
	return at(s.w, func() string { return g.node }), nil
}

// Look answers after a while with the state from when it began. A real network can do no worse.
func (s sidecarPort) Look(_ context.Context, provider string, p remediations.Pod) sidecar.Observation {
	s.enter("sight", false)
	s.w.mu.Lock()
	if provider != "sei" {
		s.w.fail("a look by the provider %q, which is not the policy's", provider)
	}
	g, takes := s.sighting(p), s.w.gates.lookTakes
	if s.w.gates.looking++; s.w.gates.looking > 10 && len(s.w.instances) == 1 {
		s.w.fail("11: %d looks at sidecars at once", s.w.gates.looking)
	}
	s.w.mu.Unlock()
	time.Sleep(takes)
	s.w.do(func() { s.w.gates.looking-- })
	return g
}

func (s sidecarPort) sighting(p remediations.Pod) sidecar.Observation {
	pod := s.w.pod(p.Name)
	if pod == nil {
		return sidecar.Observation{Pod: remediations.Pod{Namespace: p.Namespace, Name: p.Name}}
	}
	g := sidecar.Observation{
		Pod: remediations.Pod{Namespace: "sei", Name: pod.name, UID: pod.uid}, Node: pod.node, StartedAt: pod.started, Held: pod.held, Health: sidecar.HealthNotReady,
		Owner: remediations.Object{APIVersion: "sei.io/v1alpha1", Kind: "SeiNode", Namespace: "sei", Name: strings.TrimSuffix(pod.name, "-0"), UID: "owner"},
	}
	switch {
	case pod.hidden:
		g.Health, g.Detail = sidecar.HealthUnreachable, "no answer"
	case pod.failing:
		g.Health, g.Detail = sidecar.HealthProbeError, "it answered 500"
	case pod.open:
		g.Health = sidecar.HealthReady
	}
	return g
}

// Approve looks again, calls mayStill, and posts the task.
func (s sidecarPort) Approve(ctx context.Context, a Approval, mayStill func() error) (remediations.CallOutcome, error) {
	fatal := s.enter("approve "+a.Pod.String(), true)
	mood := at(s.w, func() providerMood { return s.w.gates.mood })
	time.Sleep(mood.before)
	if at(s.w, func() bool { return s.dead }) {
		runtime.Goexit()
	}
	saw := at(s.w, func() sidecar.Observation { return s.sighting(a.Pod) })
	switch {
	case at(s.w, func() bool { return s.w.gates.blindly }):
	case saw.Pod.UID != a.Pod.UID || saw.Node != a.Node:
		return remediations.CallRefused, errors.New("it is another pod")
	case saw.Held != "" || saw.Health != sidecar.HealthNotReady:
		return remediations.CallRefused, fmt.Errorf("it does not wait for an approval: %s %s", saw.Health, saw.Held)
	}
	if !at(s.w, func() bool { return s.w.lies.neverAsk }) {
		if err := mayStill(); err != nil {
			return remediations.CallRefused, err
		}
	}
	if mood.refuse {
		return remediations.CallRefused, errors.New("it answered 403")
	}
	s.w.do(func() {
		s.w.checkApproval(s.instance, a)
		if g := s.w.pod(a.Pod.Name); g != nil && (!g.tasks[a.Task] || g.forgets) && !mood.idle {
			g.tasks[a.Task] = true
			if !g.wedged {
				g.letGo()
			}
		}
		s.dead = s.dead || fatal
	})
	if mood.after > 0 {
		select {
		case <-time.After(mood.after):
		case <-ctx.Done():
			mood.cut = true
		}
	}
	if at(s.w, func() bool { return s.dead }) {
		runtime.Goexit()
	}
	if mood.cut {
		return remediations.CallUnknown, errors.New("connection reset")
	}
	return remediations.CallAccepted, nil
}
