package fleet_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/fleet"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/signs"
	"drydock.dev/drydock/remediations/testing/scene"
)

// recorded writes a record of the node's own repair on the Node, after the given change. The phase
// label follows the record.
func recorded(n *corev1.Node, change func(*Record)) *corev1.Node {
	scene.InFlight(n, "reboot")
	r := ReadJournal(n).Record
	change(r)
	n.Annotations[NodeRepairKey], n.Labels[PhaseLabel] = r.Encode(), string(r.Phase)
	return n
}

// leads writes a record of a repair of location eu on the Node.
func leads(n *corev1.Node, phase Phase) *corev1.Node {
	r := scene.LocationRecord(phase)
	n.Annotations[LocationKey], n.Labels[PhaseLabel] = r.Encode(), string(r.Phase)
	return n
}

// TestAPassLooksAtNodesThatADecisionMayDependOn: these are the nodes with a key of Drydock. A
// history counts only if it lists changes that were left on the node.
func TestAPassLooksAtNodesThatADecisionMayDependOn(t *testing.T) {
	for name, c := range map[string]struct {
		change              func(n *corev1.Node)
		concerned, inFlight bool
	}{
		"nothing":               {change: func(*corev1.Node) {}},
		"another program's key": {change: func(n *corev1.Node) { n.Annotations["example.com/a"] = "b" }},
		"a history":             {change: func(n *corev1.Node) { n.Annotations[HistoryKey] = EncodeHistory(nil, Entry{ID: "r1"}) }},
		"an alert":              {change: func(n *corev1.Node) { a := Alert{Fingerprint: scene.FP}; n.Annotations[a.Key()] = "{}" }, concerned: true},
		"a pause":               {change: func(n *corev1.Node) { n.Annotations[PauseKey] = "true" }, concerned: true},
		"a phase":               {change: func(n *corev1.Node) { n.Labels[PhaseLabel] = string(PhasePending) }, concerned: true},
		"a phase in flight":     {change: func(n *corev1.Node) { n.Labels[PhaseLabel] = string(PhaseActing) }, concerned: true, inFlight: true},
		"a record in flight":    {change: func(n *corev1.Node) { scene.InFlight(n, "reboot") }, concerned: true, inFlight: true},
		"a record without its label": {change: func(n *corev1.Node) {
			scene.InFlight(n, "reboot")
			delete(n.Labels, PhaseLabel)
		}, concerned: true, inFlight: true},
		"a pending record": {change: func(n *corev1.Node) {
			recorded(n, func(r *Record) { r.Phase = PhasePending })
			n.Labels[PhaseLabel] = string(PhaseActing)
		}, concerned: true},
		"a repair of its location": {change: func(n *corev1.Node) { leads(n, PhaseVerifying) }, concerned: true, inFlight: true},
		"a repair of its location without its label": {change: func(n *corev1.Node) {
			leads(n, PhaseVerifying)
			delete(n.Labels, PhaseLabel)
		}, concerned: true, inFlight: true},
		"a pending repair of its location": {change: func(n *corev1.Node) { leads(n, PhasePending) }, concerned: true},
		"both": {change: func(n *corev1.Node) {
			leads(n, PhasePending)
			scene.InFlight(n, "reboot")
		}, concerned: true, inFlight: true},
		"something left on the node": {change: func(n *corev1.Node) {
			n.Annotations[HistoryKey] = EncodeHistory(nil, Entry{ID: "r1", Left: []Undo{{Kind: UndoCordon, At: scene.Noon}}})
		}, concerned: true},
	} {
		t.Run(name, func(t *testing.T) {
			n := scene.Bare("n1")
			c.change(n)
			m := fleet.NewRosterOf(scene.LimitsAlone(), []*corev1.Node{n}).Member("n1")
			require.Equal(t, c.concerned, m.Concerned)
			require.Equal(t, c.inFlight, m.InFlight)
		})
	}
}

// TestWhatOccupiesTheFleetByANodeAlone: without a slot, the node's record counts, or its phase
// label if the record cannot be read.
func TestWhatOccupiesTheFleetByANodeAlone(t *testing.T) {
	const no, yes, would = "no", "yes", "would be"
	unreadable := func(phase Phase) func(*corev1.Node) {
		return func(n *corev1.Node) { n.Annotations[NodeRepairKey], n.Labels[PhaseLabel] = "{", string(phase) }
	}
	pending := func(reason Reason, phase Phase) func(*corev1.Node) {
		return func(n *corev1.Node) {
			recorded(n, func(r *Record) { r.Phase, r.Hold = phase, &Hold{Reason: reason, Message: "why", Since: scene.Noon} })
		}
	}
	for name, c := range map[string]struct {
		change func(n *corev1.Node)
		want   string
	}{
		"nothing":                            {func(*corev1.Node) {}, no},
		"a phase in flight without a record": {func(n *corev1.Node) { n.Labels[PhaseLabel] = string(PhaseActing) }, no},
		"in flight":                          {func(n *corev1.Node) { scene.InFlight(n, "reboot") }, yes},
		"unreadable, in flight by its phase": {unreadable(PhaseActing), yes},
		"unreadable, pending by its phase":   {unreadable(PhasePending), no},
		"held by observe mode":               {pending(ReasonObserving, PhasePending), would},
		"held by something else":             {pending(ReasonCooldown, PhasePending), no},
		"exhausted":                          {pending(ReasonObserving, PhaseExhausted), no},
		"a repair of its location":           {func(n *corev1.Node) { leads(n, PhaseVerifying) }, no},
		"in flight, beside one of its location": {func(n *corev1.Node) {
			leads(n, PhaseVerifying)
			scene.InFlight(n, "reboot")
		}, yes},
		"unreadable, beside a repair of its location": {func(n *corev1.Node) {
			leads(n, PhaseVerifying)
			n.Annotations[NodeRepairKey] = "{"
		}, no},
	} {
		t.Run(name, func(t *testing.T) {
			n := scene.Bare("n1")
			c.change(n)
			f := scene.FleetOf(scene.LimitsAlone(), []*corev1.Node{n}, nil, scene.Noon)
			got := no
			if len(f.Occupied()) > 0 {
				got = would
			}
			if f.NodeRepairOn("n1") {
				got = yes
			}
			require.Equal(t, c.want, got)
		})
	}
}

// TestANodeThatIsRegisteredAgainIsYoungAgain: its age counts from its new registration, even if the
// old Node was old enough.
func TestANodeThatIsRegisteredAgainIsYoungAgain(t *testing.T) {
	c := scene.LimitsAlone() // limits.startupGrace is 10m
	created := func(minutes int) *corev1.Node {
		n := scene.Bare("n1")
		n.CreationTimestamp.Time = scene.Noon.Add(time.Duration(minutes) * time.Minute)
		return n
	}
	r := fleet.NewRoster(c)
	counted := func(minutes int) int {
		_, nodes := r.Fleet(&ledger.Ledger{}, false, scene.Noon.Add(time.Duration(minutes)*time.Minute)).Health()
		return nodes
	}
	r.Change([]*corev1.Node{created(-5)}, nil)
	require.Zero(t, counted(0))
	r.Change([]*corev1.Node{created(0)}, nil)
	require.Zero(t, counted(6), "the earlier registration would be old enough")
	require.Equal(t, 1, counted(10))
	require.Zero(t, counted(9), "the clock was set back")
	require.Equal(t, 1, counted(10))
	r.Change([]*corev1.Node{created(9)}, nil)
	require.Zero(t, counted(11), "a node that was old enough is registered again")
	changed := created(9)
	changed.Labels["a"] = "b"
	r.Change([]*corev1.Node{changed}, nil)
	require.Zero(t, counted(18), "a change of its labels does not make it older")
	require.Equal(t, 1, counted(19))

	r = fleet.NewRoster(c)
	n := scene.Bare("n1")
	n.CreationTimestamp.Time = time.Time{}
	r.Change([]*corev1.Node{n}, nil)
	require.Equal(t, 1, counted(0), "without a creation time it counts as old")
}

// TestALabelWithoutAValueIsPartOfTheIdentity: most labels that name a role have no value.
func TestALabelWithoutAValueIsPartOfTheIdentity(t *testing.T) {
	r, n := fleet.NewRoster(scene.LimitsAlone()), scene.Bare("n1")
	r.Change([]*corev1.Node{n}, nil)
	was := r.Identities()
	role := n.DeepCopy()
	role.Labels["node-role.kubernetes.io/control-plane"] = ""
	r.Change([]*corev1.Node{role}, nil)
	require.NotEqual(t, was, r.Identities())
	was = r.Identities()
	r.Change([]*corev1.Node{n}, nil)
	require.NotEqual(t, was, r.Identities())
}

// gpuNode returns a node whose label has count GPUs, and which offers the same number.
func gpuNode(name, count string) *corev1.Node {
	n := scene.Bare(name)
	n.Labels[signs.GPUCountLabel] = count
	n.Status.Allocatable = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse(count)}
	return n
}

// TestHowManyGPUsEachNodeShouldOffer: it is the largest number of its label, its record and the
// ledger. The numbers follow each of the three, and GPUsVersion changes with them.
func TestHowManyGPUsEachNodeShouldOffer(t *testing.T) {
	r, l := fleet.NewRoster(scene.LimitsAlone()), &ledger.Ledger{}
	version := -1
	expected := func() map[string]int {
		f := r.Fleet(l, false, scene.Noon)
		version = f.GPUsVersion()
		return f.ExpectedGPUs
	}
	n := gpuNode("n1", "4")
	r.Change([]*corev1.Node{n, scene.Bare("n2")}, nil)
	require.Equal(t, map[string]int{"n1": 4}, expected())

	was := version
	require.Equal(t, map[string]int{"n1": 4}, expected())
	other := scene.Bare("n2")
	other.Labels["a"] = "b"
	r.Change([]*corev1.Node{other}, nil)
	require.Equal(t, map[string]int{"n1": 4}, expected())
	require.Equal(t, was, version, "nothing changed of nodes with GPUs")
	require.Equal(t, l.GPUs, r.LedgerGPUs())

	r.Change([]*corev1.Node{gpuNode("n1", "6")}, nil)
	require.Equal(t, map[string]int{"n1": 6}, expected(), "the label says more")
	require.NotEqual(t, was, version)
	l = &ledger.Ledger{GPUs: map[string]int{ledger.GPUMachine(n): 8}}
	require.Equal(t, map[string]int{"n1": 8}, expected(), "the ledger says more")
	l = &ledger.Ledger{}
	require.Equal(t, map[string]int{"n1": 6}, expected(), "a person accepted the number")

	had := recorded(gpuNode("n1", "6"), func(r *Record) { r.Intent.ProviderID, r.Intent.GPUs = n.Spec.ProviderID, 7 })
	r.Change([]*corev1.Node{had}, nil)
	require.Equal(t, map[string]int{"n1": 7}, expected(), "its repair remembers more")
	has := recorded(gpuNode("n1", "6"), func(r *Record) { r.Intent.ProviderID, r.Intent.GPUs = n.Spec.ProviderID, 5 })
	r.Change([]*corev1.Node{has}, nil)
	require.Equal(t, map[string]int{"n1": 6}, expected(), "its repair remembers fewer")
	virtual := recorded(gpuNode("n1", "6"), func(r *Record) { r.Intent.ProviderID, r.Intent.GPUs = n.Spec.ProviderID, 7 })
	virtual.Labels["nvidia.com/gpu.workload.config"] = "vm-passthrough"
	r.Change([]*corev1.Node{virtual}, nil)
	require.Empty(t, expected(), "virtual machines have them")
	r.Change(nil, []string{"n1"})
	require.Empty(t, expected())
}

// TestTheLedgerRemembersTheGPUsOfWholeMachines: it does not store a number that may fall without a
// fault.
func TestTheLedgerRemembersTheGPUsOfWholeMachines(t *testing.T) {
	for name, c := range map[string]struct {
		change func(n *corev1.Node)
		known  int
		want   int
	}{
		"all":                 {func(*corev1.Node) {}, 0, 4},
		"more than known":     {func(*corev1.Node) {}, 3, 4},
		"as many as known":    {func(*corev1.Node) {}, 4, 0},
		"shared":              {func(n *corev1.Node) { n.Labels["nvidia.com/gpu.sharing-strategy"] = "mps" }, 0, 0},
		"shared, fewer known": {func(n *corev1.Node) { n.Labels["nvidia.com/gpu.sharing-strategy"] = "mps" }, 3, 0},
		"no GPU at all":       {func(n *corev1.Node) { delete(n.Labels, signs.GPUCountLabel) }, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			n := gpuNode("n1", "4")
			c.change(n)
			l := &ledger.Ledger{GPUs: map[string]int{"another machine": 2}}
			if c.known > 0 {
				l.GPUs[ledger.GPUMachine(n)] = c.known
			}
			got := fleet.NewRosterOf(scene.LimitsAlone(), []*corev1.Node{n}).SeenGPUs(l)
			if c.want == 0 {
				require.Nil(t, got)
				return
			}
			require.Equal(t, map[string]int{"another machine": 2, ledger.GPUMachine(n): c.want}, got, "a machine without a Node stays while there is room")
		})
	}
}

// TestSidecarsInFlightCountForAsLongAsTheirStepMayTake: an overdue record does not count.
func TestSidecarsInFlightCountForAsLongAsTheirStepMayTake(t *testing.T) {
	n := scene.Bare("n1")
	r := Record{
		V: RecordVersion, ID: "abc234", Policy: "p", Cause: Cause{Alert: scene.FP}, Phase: PhaseVerifying, Step: StepRef{Name: "mark-ready", Attempt: 1},
		Began: scene.Noon, Since: scene.Noon, Deadline: scene.Noon.Add(time.Minute), Pod: &scene.ThePod, Intent: &Intent{ID: "abc234-0-1", At: scene.Noon},
	}
	n.Annotations[SidecarKey(scene.ThePod)] = r.Encode()
	roster := fleet.NewRosterOf(scene.LimitsAlone(), []*corev1.Node{n, scene.Bare("n2")})
	over := r.Deadline.Add(OverdueFor)
	require.Equal(t, 1, roster.SidecarsInFlight(scene.Noon))
	require.Equal(t, 1, roster.SidecarsInFlight(over.Add(-time.Second)))
	require.Zero(t, roster.SidecarsInFlight(over))
}

// TestAValueThatNoNodeHasIsForgotten: otherwise the old IDs of machines and boots would fill the
// memory.
func TestAValueThatNoNodeHasIsForgotten(t *testing.T) {
	node := func(name, boot string) *corev1.Node {
		n := scene.Bare(name)
		n.Status.NodeInfo.BootID, n.Spec.ProviderID = boot, ""
		return n
	}
	r := fleet.NewRosterOf(scene.LimitsAlone(), []*corev1.Node{node("n1", "a"), node("n2", "a"), node("n3", "")})
	require.Equal(t, 1, r.Holders())
	r.Change([]*corev1.Node{node("n2", "b")}, nil)
	require.Equal(t, 2, r.Holders(), "the other one still has it")
	r.Change([]*corev1.Node{node("n1", "c"), node("n2", "c")}, nil)
	require.Equal(t, 1, r.Holders())
	r.Change(nil, []string{"n1", "n2", "n3"})
	require.Zero(t, r.Holders())
}

// TestNodesWhoseBootIDChangedTogether: they share the boot ID like containers of one host. A Node
// that got the boot ID from another value, or from none, follows the Node that had it.
func TestNodesWhoseBootIDChangedTogether(t *testing.T) {
	type boots = []*corev1.Node
	for name, c := range map[string]struct {
		then       []boots
		ofA, ofB   string
		ofUnlisted string
	}{
		"both from none":            {[]boots{{booted("a", ""), booted("b", "")}, {booted("a", "x")}, {booted("b", "x")}}, "", "a", "a"},
		"the first is new":          {[]boots{{booted("b", "")}, {booted("a", "x")}, {booted("b", "x")}}, "", "a", "a"},
		"the first is new, from y":  {[]boots{{booted("b", "y")}, {booted("a", "x")}, {booted("b", "x")}}, "", "a", "a"},
		"both from y":               {[]boots{{booted("a", "y"), booted("b", "y")}, {booted("a", "x")}, {booted("b", "x")}}, "b", "a", "a"},
		"from y and from z":         {[]boots{{booted("a", "y"), booted("b", "z")}, {booted("a", "x")}, {booted("b", "x")}}, "", "a", "a"},
		"the later one comes first": {[]boots{{booted("a", "y"), booted("b", "y")}, {booted("b", "x")}, {booted("a", "x")}}, "b", "a", "a"},
	} {
		t.Run(name, func(t *testing.T) {
			r := fleet.NewRoster(scene.LimitsAlone())
			for _, nodes := range c.then {
				r.Change(nodes, nil)
			}
			same := r.Node("a").DeepCopy()
			same.Labels["a"] = "b"
			r.Change([]*corev1.Node{same}, nil) // another label changes no boot
			f := r.Fleet(&ledger.Ledger{}, false, scene.Noon)
			require.Equal(t, c.ofA, f.SameBoot(r.Node("a")))
			require.Equal(t, c.ofB, f.SameBoot(r.Node("b")))
			require.Equal(t, c.ofUnlisted, f.SameBoot(booted("c", "x")), "a Node that the roster does not know: the first by name")
		})
	}
}

// TestANodeIsAskedAboutByItsOwnName: of three Nodes of one machine, each names the first of the
// others.
func TestANodeIsAskedAboutByItsOwnName(t *testing.T) {
	var nodes []*corev1.Node
	for _, name := range []string{"b", "c", "a"} {
		n := scene.Bare(name)
		n.Spec.ProviderID = "civo://x"
		nodes = append(nodes, n)
	}
	r := fleet.NewRosterOf(scene.LimitsAlone(), nodes)
	for _, n := range nodes {
		want := "a"
		if n.Name == "a" {
			want = "b"
		}
		require.Equal(t, want, r.Twin(n), n.Name)
	}
}
