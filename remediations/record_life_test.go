package remediations

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations/announce"
)

var noonOfTheDay = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

// TestARecordHasTheAttemptsOfTheRepairThatItContinues: All also has the attempts of the earlier
// repair, before its own.
func TestARecordHasTheAttemptsOfTheRepairThatItContinues(t *testing.T) {
	own, earlier := Attempts{{Name: "replace", Number: 1}}, Attempts{{Name: "reboot", Number: 1}}
	require.Equal(t, own, (&Record{Done: own}).All())
	require.Equal(t, Attempts{earlier[0], own[0]}, (&Record{Done: own, After: &After{Steps: earlier}}).All())
}

// TestWhenARecordIsWrittenWithItsHold: the method Holds is true in four cases besides a new hold.
// The phase has changed, another repair is on record, a person must approve another plan, or a
// problem of one machine has become one of the provider.
func TestWhenARecordIsWrittenWithItsHold(t *testing.T) {
	soon, later := noonOfTheDay, noonOfTheDay.Add(time.Hour)
	record := func(change func(r *Record)) *Record {
		r := &Record{ID: "aaaaaa", Phase: PhasePending, Plan: "d1", Hold: &Hold{Reason: ReasonPaused}}
		change(r)
		return r
	}
	same := record(func(*Record) {})
	for name, c := range map[string]struct {
		on        *Record
		hold      Hold
		fleetwide bool
		want      bool
	}{
		"the same hold":                               {same, Hold{Reason: ReasonPaused}, false, false},
		"nothing is on record":                        {nil, Hold{Reason: ReasonPaused}, false, true},
		"without a hold":                              {record(func(r *Record) { r.Hold = nil }), Hold{Reason: ReasonPaused}, false, true},
		"another reason":                              {same, Hold{Reason: ReasonCooldown}, false, true},
		"another end":                                 {record(func(r *Record) { r.Hold.Until = &soon }), Hold{Reason: ReasonPaused, Until: &later}, false, true},
		"the same end":                                {record(func(r *Record) { r.Hold.Until = &soon }), Hold{Reason: ReasonPaused, Until: &soon}, false, false},
		"an end":                                      {same, Hold{Reason: ReasonPaused, Until: &soon}, false, true},
		"no end any more":                             {record(func(r *Record) { r.Hold.Until = &soon }), Hold{Reason: ReasonPaused}, false, true},
		"of this machine alone":                       {same, Hold{Reason: ReasonPaused, Alone: true}, false, true},
		"another repair":                              {record(func(r *Record) { r.ID = "bbbbbb" }), Hold{Reason: ReasonPaused}, false, true},
		"another repair, all nodes are held":          {record(func(r *Record) { r.ID = "bbbbbb" }), Hold{Reason: ReasonAtLimit}, true, false},
		"the phase ended, all nodes are held":         {record(func(r *Record) { r.Phase = PhaseVerifying }), Hold{Reason: ReasonAtLimit}, true, true},
		"the phase ended":                             {record(func(r *Record) { r.Phase = PhaseVerifying }), Hold{Reason: ReasonPaused}, false, true},
		"another plan, which needs approval":          {record(func(r *Record) { r.Plan, r.Hold.Reason = "d0", ReasonAwaitingApproval }), Hold{Reason: ReasonAwaitingApproval}, false, true},
		"the same plan, which needs approval":         {record(func(r *Record) { r.Hold.Reason = ReasonAwaitingApproval }), Hold{Reason: ReasonAwaitingApproval}, false, false},
		"nothing on record, it needs approval":        {nil, Hold{Reason: ReasonAwaitingApproval}, false, true},
		"another plan, it needs no approval":          {record(func(r *Record) { r.Plan = "d0" }), Hold{Reason: ReasonPaused}, false, false},
		"absent for this machine, now for all":        {record(func(r *Record) { r.Hold = &Hold{Reason: ReasonProviderAbsent, Alone: true} }), Hold{Reason: ReasonProviderAbsent}, true, true},
		"unreachable for this machine, now for all":   {record(func(r *Record) { r.Hold = &Hold{Reason: ReasonProviderUnreachable, Alone: true} }), Hold{Reason: ReasonProviderUnreachable}, true, true},
		"this machine was counted, now all":           {record(func(r *Record) { r.Alone, r.Hold = 1, &Hold{Reason: ReasonProviderAbsent} }), Hold{Reason: ReasonProviderAbsent}, true, true},
		"for all before, and for all now":             {record(func(r *Record) { r.Hold = &Hold{Reason: ReasonProviderAbsent} }), Hold{Reason: ReasonProviderAbsent}, true, false},
		"this machine alone, all are held by a limit": {record(func(r *Record) { r.Hold = &Hold{Reason: ReasonAtLimit, Alone: true} }), Hold{Reason: ReasonAtLimit}, true, false},
	} {
		require.Equal(t, c.want, c.on.Holds(record(func(*Record) {}), &c.hold, c.fleetwide), name)
	}
	require.True(t, (*Hold)(nil).same(nil))
	require.False(t, (*Hold)(nil).same(&Hold{}))
	require.False(t, (&Hold{}).same(nil))
}

// TestBetweenTwoAttemptsARepairIsPending: Between makes a repair Pending, with a deadline in a day.
// A repair that is already Pending keeps its deadline.
func TestBetweenTwoAttemptsARepairIsPending(t *testing.T) {
	before := noonOfTheDay.Add(-time.Hour)
	got := (&Record{Phase: PhaseVerifying, Since: before, Deadline: before, Note: "a"}).Between(noonOfTheDay)
	require.Equal(t, &Record{Phase: PhasePending, Since: noonOfTheDay, Deadline: noonOfTheDay.Add(PendingFor)}, got)
	pending := &Record{Phase: PhasePending, Since: before, Deadline: before, Note: "a"}
	require.Equal(t, pending, pending.Between(noonOfTheDay))
}

func TestAHoldSaysWhy(t *testing.T) {
	require.Equal(t, "no reason on record", (*Hold)(nil).Words())
	require.Equal(t, "paused", (&Hold{Message: "paused"}).Words())
}

// TestTheAttemptThatWasIssuedLast: LastDone returns the record's step if the intent is for it, and
// otherwise the last attempt in Done.
func TestTheAttemptThatWasIssuedLast(t *testing.T) {
	done := Attempts{{Name: "drain", Number: 1}, {Name: "reboot", Number: 1}}
	step := StepRef{Index: 2, Name: "replace", Attempt: 1}
	for name, c := range map[string]struct {
		r    Record
		want string
	}{
		"the intent is for the step":          {Record{ID: "r1", Step: step, Done: done, Intent: &Intent{ID: "r1-2-1"}}, "replace"},
		"the intent is for an earlier step":   {Record{ID: "r1", Step: step, Done: done, Intent: &Intent{ID: "r1-1-1"}}, "reboot"},
		"the step was withheld and repeated":  {Record{ID: "r1", Step: step, Done: done, Intent: &Intent{ID: "r1-2-1-abc"}}, "replace"},
		"the intent is for a later attempt":   {Record{ID: "r1", Step: step, Done: done, Intent: &Intent{ID: "r1-2-10"}}, "reboot"},
		"without an intent":                   {Record{ID: "r1", Step: step, Done: done}, "reboot"},
		"an earlier version noted no attempt": {Record{ID: "r1", Step: step, Intent: &Intent{ID: "r1-1-1"}}, "replace"},
	} {
		require.Equal(t, c.want, LastDone(&c.r).Name, name)
	}
}

// TestAttemptsAreReadFromTheirIDs: AttemptNamed parses only ids of the repair's own attempts.
func TestAttemptsAreReadFromTheirIDs(t *testing.T) {
	ref, ok := AttemptNamed("r1", "r1-2-3")
	require.True(t, ok)
	require.Equal(t, StepRef{Index: 2, Attempt: 3}, ref)
	for _, id := range []string{"r2-2-3", "r1-withheld", "", "r1-2"} {
		ref, ok := AttemptNamed("r1", id)
		require.False(t, ok, id)
		require.Zero(t, ref, id)
	}
	r := &Record{ID: "r1", Step: StepRef{Index: 1, Name: "reboot", Attempt: 1}, Intent: &Intent{ID: "r1-1-1"}}
	ref, ok = r.Issued()
	require.True(t, ok)
	require.Equal(t, r.Step, ref)
	r.Intent.ID = "r1-withheld"
	ref, ok = r.Issued()
	require.False(t, ok)
	require.Zero(t, ref)
	r.Intent = nil
	_, ok = r.Issued()
	require.False(t, ok)
}

// TestAWithheldAttemptIsMadeAgainUnderAnotherID: an attempt was withheld if its record is Pending
// and the intent has no id. If the repair continues without this attempt, the intent gets an id.
func TestAWithheldAttemptIsMadeAgainUnderAnotherID(t *testing.T) {
	step := StepRef{Index: 1, Name: "reboot", Attempt: 1}
	for name, c := range map[string]struct {
		r        Record
		withheld bool
		named    string
	}{
		"withheld":             {Record{ID: "r1", Phase: PhasePending, Intent: &Intent{}}, true, "r1-withheld"},
		"issued":               {Record{ID: "r1", Phase: PhasePending, Intent: &Intent{ID: "r1-1-1"}}, false, "r1-1-1"},
		"without an intent":    {Record{ID: "r1", Phase: PhasePending}, false, ""},
		"in flight without ID": {Record{ID: "r1", Phase: PhaseActing, Intent: &Intent{}}, false, "r1-withheld"},
	} {
		require.Equal(t, c.withheld, c.r.Withheld(), name)
		if id := NextIntentID(&c.r, step, noonOfTheDay); c.withheld {
			require.Regexp(t, `^r1-1-1-\w+$`, id, name)
		} else {
			require.Equal(t, "r1-1-1", id, name)
		}
		c.r.NameIntent()
		named := ""
		if c.r.Intent != nil {
			named = c.r.Intent.ID
		}
		require.Equal(t, c.named, named, name)
	}
	require.Equal(t, ReasonPaused, WithheldFor(Withhold(ReasonPaused, "why"), ReasonCooldown))
	require.Equal(t, ReasonCooldown, WithheldFor(errors.New("why"), ReasonCooldown))
}

// TestWhatAProviderKeptIsOneJSONObject: Before refuses a text that only begins like a JSON object.
func TestWhatAProviderKeptIsOneJSONObject(t *testing.T) {
	require.NoError(t, Before(`{"a":1}`).Check())
	require.Error(t, Before(`{"a":1`).Check())
	var b Before
	require.ErrorContains(t, b.UnmarshalJSON([]byte(`{"a":1`)), "unexpected end of JSON input")
	require.NoError(t, b.UnmarshalJSON([]byte(`{ "a": 1 }`)))
	require.Equal(t, Before(`{"a":1}`), b)
}

// TestAStepThatWasPassedOver: Tried compares the index and the name of a step, because the plan may
// have been edited.
func TestAStepThatWasPassedOver(t *testing.T) {
	r := &Record{Passed: []Passed{{Index: 1, Name: "reboot"}}}
	require.True(t, r.Tried(StepRef{Index: 1, Name: "reboot", Attempt: 2}))
	require.False(t, r.Tried(StepRef{Index: 1, Name: "replace"}))
	require.False(t, r.Tried(StepRef{Index: 2, Name: "reboot"}))
}

// TestWhichAttemptsTheEarlierRepairHasSpent: Spent is true up to the earlier repair's last attempt,
// but not for repeatable steps. If the plan no longer has that last step, nothing is spent.
func TestWhichAttemptsTheEarlierRepairHasSpent(t *testing.T) {
	p := &Policy{Name: "p", Plan: []Step{{Name: "drain"}, {Name: "restart-kubelet"}, {Name: "reboot"}, {Name: "replace"}}}
	after := &After{Step: StepRef{Index: 2, Name: "reboot", Attempt: 2}}
	for name, c := range map[string]struct {
		after *After
		ref   StepRef
		want  bool
	}{
		"an earlier step":                   {after, StepRef{Index: 1, Name: "restart-kubelet", Attempt: 9}, true},
		"an earlier attempt":                {after, StepRef{Index: 2, Name: "reboot", Attempt: 1}, true},
		"the same attempt":                  {after, StepRef{Index: 2, Name: "reboot", Attempt: 2}, true},
		"the next attempt":                  {after, StepRef{Index: 2, Name: "reboot", Attempt: 3}, false},
		"a later step":                      {after, StepRef{Index: 3, Name: "replace", Attempt: 1}, false},
		"a step that prepares":              {after, StepRef{Index: 0, Name: "drain", Attempt: 1}, false},
		"no earlier repair":                 {nil, StepRef{Index: 1, Name: "restart-kubelet", Attempt: 1}, false},
		"the plan has another step instead": {&After{Step: StepRef{Index: 2, Name: "sysrq", Attempt: 2}}, StepRef{Index: 1, Name: "restart-kubelet", Attempt: 1}, false},
	} {
		require.Equal(t, c.want, (&Record{After: c.after}).Spent(&Config{}, p, c.ref), name)
	}
}

// TestWhatOnlyObserves: Observes is true for a Pending repair that did nothing and that the reason
// Observing holds.
func TestWhatOnlyObserves(t *testing.T) {
	for name, c := range map[string]struct {
		change func(r *Record)
		want   bool
	}{
		"observed":         {func(*Record) {}, true},
		"with an intent":   {func(r *Record) { r.Intent = &Intent{} }, false},
		"in another phase": {func(r *Record) { r.Phase = PhaseVerifying }, false},
		"held by a person": {func(r *Record) { r.Hold.Reason = ReasonPaused }, false},
		"held by nothing":  {func(r *Record) { r.Hold = nil }, false},
	} {
		r := &Record{Phase: PhasePending, Hold: &Hold{Reason: ReasonObserving}}
		c.change(r)
		require.Equal(t, c.want, r.Observes(), name)
	}
	require.False(t, (*Record)(nil).Observes())
}

// TestWhichConditionsARepairMakesTrue: MaintenanceInProgress is true from the first intent to the
// end of the repair, and DrainInProgress during a drain.
func TestWhichConditionsARepairMakesTrue(t *testing.T) {
	maintenance, draining := corev1.NodeMaintenanceInProgress, corev1.NodeConditionType("Draining")
	for name, c := range map[string]struct {
		r                  *Record
		maintenance, drain bool
	}{
		"no record":        {nil, false, false},
		"before it begins": {&Record{Phase: PhasePending, Step: StepRef{Name: "drain"}}, false, false},
		"draining":         {&Record{Phase: PhaseActing, Step: StepRef{Name: "drain"}, Intent: &Intent{}}, true, true},
		"drained":          {&Record{Phase: PhasePending, Step: StepRef{Name: "drain"}, Intent: &Intent{}}, true, false},
		"rebooting":        {&Record{Phase: PhaseActing, Step: StepRef{Name: "reboot"}, Intent: &Intent{}}, true, false},
		"proving":          {&Record{Phase: PhaseVerifying, Step: StepRef{Name: "reboot"}, Intent: &Intent{}}, true, false},
		"exhausted":        {&Record{Phase: PhaseExhausted, Step: StepRef{Name: "drain"}, Intent: &Intent{}}, false, false},
	} {
		require.Equal(t, c.maintenance, c.r.announces(maintenance) != "", name)
		require.Equal(t, c.drain, c.r.announces(draining) != "", name)
	}
}

// TestWhatIsStillToAnnounce: Unannounced returns the keys that neither the Node nor the record has.
func TestWhatIsStillToAnnounce(t *testing.T) {
	n := &corev1.Node{}
	n.Annotations = map[string]string{"a": ""}
	r := &Record{Undo: []Undo{{Kind: UndoAnnotation, Key: "b"}, {Kind: UndoCordon, Key: "c"}}}
	require.Equal(t, []string{"c", "d"}, r.Unannounced(&Config{Announce: []string{"a", "b", "c", "d"}}, n))
}

// TestHowLongTheReadersOfAnnouncementsNeed: the time begins with the write that set the annotation,
// or is the time on record if an earlier write set it. The last reader decides. An announcement
// without a slow reader needs no time.
func TestHowLongTheReadersOfAnnouncementsNeed(t *testing.T) {
	const read, unread = "karpenter.sh/do-not-repair", "karpenter.sh/do-not-disrupt"
	karpenters, others := &corev1.Node{}, &corev1.Node{}
	karpenters.Labels = map[string]string{"karpenter.sh/nodepool": "default"}
	wait := announce.Settling(karpenters, read)
	require.Positive(t, wait)
	written := noonOfTheDay.Add(time.Second)
	undo := func(kind, key string, at time.Time) Undo { return Undo{Kind: kind, Key: key, At: at} }
	for name, c := range map[string]struct {
		node  *corev1.Node
		undo  []Undo
		fresh []string
		want  time.Time
	}{
		"set in this write":           {karpenters, []Undo{undo(UndoAnnotation, read, noonOfTheDay)}, []string{read}, written.Add(wait)},
		"set before":                  {karpenters, []Undo{undo(UndoAnnotation, read, noonOfTheDay)}, []string{unread}, noonOfTheDay.Add(wait)},
		"set twice, the last decides": {karpenters, []Undo{undo(UndoAnnotation, read, written), undo(UndoAnnotation, read, noonOfTheDay)}, nil, written.Add(wait)},
		"no reader is slow":           {karpenters, []Undo{undo(UndoAnnotation, unread, noonOfTheDay)}, []string{unread}, time.Time{}},
		"not a node of Karpenter":     {others, []Undo{undo(UndoAnnotation, read, noonOfTheDay)}, []string{read}, time.Time{}},
		"a taint":                     {karpenters, []Undo{undo(UndoTaint, read, noonOfTheDay)}, nil, time.Time{}},
		"nothing announced":           {karpenters, nil, nil, time.Time{}},
	} {
		require.Equal(t, c.want, (&Record{Undo: c.undo}).Settled(c.node, c.fresh, written), name)
	}
}

// TestWhichKindATargetIs: Drydock finds a target's kind by the annotation key, by the record, and
// by the policy of the alert.
func TestWhichKindATargetIs(t *testing.T) {
	for key, want := range map[string]Kind{KeyOf(KindNode, "n1"): KindNode, KeyOf(KindLocation, "eu"): KindLocation, KeyOf(KindSidecar, "sei/a-0"): KindSidecar, KeyOf("disk", "sda"): "disk"} {
		kind, ok := kindOfKey(key)
		require.True(t, ok, key)
		require.Equal(t, want, kind, key)
	}
	for _, key := range []string{RepairPrefix, RepairPrefix + string(KindLocation) + "-0a", RepairPrefix + string(KindSidecar), RepairPrefix + string(KindLocation) + "-", RepairPrefix + "-0a"} {
		_, ok := kindOfKey(key)
		require.False(t, ok, key)
	}
	require.Equal(t, NodeRepairKey, KeyOf(KindNode, "n1"))

	disk := Remediation{Target: "disk"}
	require.Equal(t, KindSidecar, (&Record{Pod: &Pod{}}).kind(disk))
	require.Equal(t, KindLocation, (&Record{Location: "eu"}).kind(disk))
	require.Equal(t, Kind("disk"), (&Record{Target: "sda"}).kind(disk))
	require.Equal(t, KindNode, (&Record{}).kind(disk), "without a name it is the node's own")
	require.True(t, (&Record{Pod: &Pod{}}).Shares())
	require.False(t, (&Record{}).Shares())

	location := &TargetKind{Kind: KindLocation, Name: func(_ *Policy, labels map[string]string) (string, error) { return labels["location"], nil }}
	c := &Config{Kinds: []*TargetKind{location}, Policies: []*Policy{
		{Name: "node", Labels: []string{"node"}}, {Name: "location", Kind: KindLocation, Labels: []string{"node"}}, {Name: "other", Kind: "disk", Labels: []string{"node"}}, {Name: "nothing"},
	}}
	labels := map[string]string{"node": "n1", "location": "eu"}
	for policy, want := range map[string]string{"node": "n1", "location": "eu", "other": "", "nothing": ""} {
		name, err := c.NameOf(c.Policy(policy), labels)
		require.Equal(t, want, name, policy)
		require.Equal(t, want == "", err != nil, policy)
	}
	j := Journal{Alerts: []Alert{{Policy: "node", Labels: labels}, {Policy: "location", Labels: labels}, {Policy: "gone", Labels: labels}}}
	subjects := c.Subjects(KindLocation, j)
	require.Len(t, subjects, 1)
	require.Equal(t, "eu", subjects[0].Name)
	require.Len(t, subjects[0].Alerts, 1, "the alerts of nodes are of another kind")
}

// TestHowLongAStepMayTake: WaitOf returns the wait of the plan or, if the plan no longer has the
// step, the remediation's default.
func TestHowLongAStepMayTake(t *testing.T) {
	p := &Policy{Plan: []Step{{Name: "reboot", Wait: time.Hour}}}
	c := &Config{}
	require.Equal(t, time.Hour, c.WaitOf(p, StepRef{Name: "reboot"}))
	require.Equal(t, replace.Wait, c.WaitOf(p, StepRef{Index: 1, Name: "replace"}))
	require.Equal(t, unknownWait, c.WaitOf(p, StepRef{Index: 1, Name: "unknown"}))
	require.Equal(t, noonOfTheDay, Earlier(noonOfTheDay, noonOfTheDay.Add(1)))
	require.Equal(t, noonOfTheDay, Earlier(noonOfTheDay.Add(1), noonOfTheDay))
}
