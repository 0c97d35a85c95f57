package ledger

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/coverage"
	"drydock.dev/drydock/remediations/selftest"
)

// Ledger is the content of the ConfigMap that limits disruptive repairs. Only the leader writes it,
// by compare-and-swap.
type Ledger struct {
	// Slots has every disruptive repair in the phases Acting and Verifying.
	Slots []Slot
	// Repairs has, by Machine, the disruptive repairs that began within limits.repairsWindow.
	Repairs map[string][]Begun
	// Moves has, by location of the mesh, the repairs that recently moved its leadership, each with
	// the time of its last move.
	Moves map[string][]Begun
	// Wide has the repairs that recently changed the whole cluster, each with the time of its last
	// change.
	Wide []Begun
	// Orphans are the repairs that replace the machine of their Node, and so may outlive the Node.
	Orphans []Orphan
	// Cures has, by machine, the repairs that cured it and may still relapse, one for each policy.
	// Unseen has the periods while Drydock could not observe alerts. They do not count toward a
	// relapse window.
	Cures  map[string][]Cure
	Unseen []Span
	// GPUs has, by GPUMachine, the largest number of GPUs of each machine. Copies of the ledger share
	// the map, so a change needs a new map.
	GPUs map[string]int
	// Ends has, by Machine, how the last repair of each policy ended, and the cancels of the machine's
	// alerts.
	Ends map[string][]End
	// Arrival is when the self-test's alert last reached any replica, or zero. Each replica writes it
	// without the compare-and-swap. An unreadable value counts as zero, and must not hold repairs.
	Arrival time.Time
	// Others are the keys of the ConfigMap that this version of Drydock does not know, with their
	// values. Encode writes them back.
	Others map[string]string
	// Status informs people. Decisions also depend on some of its fields: Breakers, BreakGlass and
	// WentBack, and on Exhausted, Ends and Stopped, which stop policies.
	Status Status
}

// Status is what `kubectl drydock status` prints.
type Status struct {
	Mode remediations.Mode `json:"mode,omitempty"`
	// Limits are the configured limits, by their key under limits.
	Limits map[string]string `json:"limits,omitempty"`
	// BreakGlass are the nodes with drydock.dev/break-glass, by name.
	BreakGlass map[string]BreakGlass `json:"breakGlass,omitempty"`
	// Breakers are the breakers that are not closed, by scope: "cluster" or "zone/<name>".
	Breakers map[string]Breaker `json:"breakers,omitempty"`
	// Blind is why Drydock cannot trust any alert, or empty.
	Blind string `json:"blind,omitempty"`
	// WentBack is set while all disruptive repairs are held because the API server's store returned
	// to an older state.
	WentBack *WentBack `json:"wentBack,omitempty"`
	// Exhausted counts, by policy, the exhausted repairs in a row.
	Exhausted map[string]int `json:"exhausted,omitempty"`
	// Ends are the last ends of the repairs of each policy, the oldest first. Exhausted is counted
	// from them.
	Ends map[string][]RepairEnd `json:"ends,omitempty"`
	// Stopped has, by policy, why the provider will refuse all of the policy's calls until a person
	// acts.
	Stopped map[string]string `json:"stopped,omitempty"`
	// Sidecars are the pods, as namespace/name, whose sidecar repairs are exhausted, each with its
	// node. The number is limited to what fits into one sentence. The ledger has them because no label
	// selects their Nodes.
	Sidecars map[string]string `json:"sidecars,omitempty"`
	// Holds are the holds that concern the whole fleet, by reason, each with its message.
	Holds map[remediations.Reason]string `json:"holds,omitempty"`
	// Concerns say what the holds are about. A hold without an entry is about every node.
	Concerns map[remediations.Reason]remediations.Concern `json:"concerns,omitempty"`
	// SelfTest is the state of the connection to Alertmanager.
	SelfTest selftest.Result `json:"selfTest,omitzero"`
	// Uncovered are, by step, the Nodes that do not have exactly one provider for the step.
	Uncovered map[string]coverage.Lack `json:"uncovered,omitempty"`
	// Admission is the state of the leading replica's webhook, or nil if it has no webhook.
	Admission *Admission `json:"admission,omitempty"`
	// Aside is why this installation is not in charge of the cluster and changes nothing. It is empty
	// if the installation is in charge.
	Aside string `json:"aside,omitempty"`
	// Denied is why the API server refuses Drydock's own keys on all Nodes, or empty. Limited are
	// other writes on Nodes that the API server refuses, each as a sentence.
	Denied  string   `json:"denied,omitempty"`
	Limited []string `json:"limited,omitempty"`
	// Unwritten has, by Node, why Drydock cannot write an alert or its record on the Node.
	Unwritten map[string]string `json:"unwritten,omitempty"`
	// Contested has a sentence for each other system that repairs Nodes which Drydock's policies take,
	// too.
	Contested []string `json:"contested,omitempty"`
	// Unknown and UnknownMore are fields that a newer Drydock wrote, under KeyStatus and under
	// keyStatusMore.
	Unknown     Unknown `json:"-"`
	UnknownMore Unknown `json:"-"`
}

// Admission is since when the leading replica's webhook has served, and when its last request came.
// Last is zero if no request came.
type Admission struct {
	Serving time.Time `json:"serving"`
	Last    time.Time `json:"last,omitzero"`
}

// admissionApart is how much later a request must be so that the ledger is written for it.
const admissionApart = 10 * time.Minute

// Same reports whether the two are so similar that the ledger need not be written.
func (a *Admission) Same(b *Admission) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Serving.Equal(b.Serving) && a.Last.IsZero() == b.Last.IsZero() && a.Last.Sub(b.Last).Abs() < admissionApart
}

// WentBack describes a store that returned to an older state, for example from a backup, and has
// the time until which it holds repairs.
type WentBack struct {
	Why   string    `json:"why"`
	Until time.Time `json:"until"`
}

// BreakGlass is the value of a node's drydock.dev/break-glass, and the time since when it has this
// value. A new value starts a new hour.
type BreakGlass struct {
	Since time.Time `json:"since"`
	Why   string    `json:"why"`
}

// These are the data keys of the ConfigMap. keyVersion has the version. Each other key has one JSON
// value.
const (
	keyVersion    = "v"
	KeySlots      = "slots"
	keyRepairs    = "repairs"
	keyMoves      = "moves"
	keyWide       = "wide"
	ledgerCures   = "cures"
	ledgerUnseen  = "unseen"
	keyGPUs       = "gpus"
	keyEnds       = "ends"
	keyOrphans    = "orphans"
	KeyStatus     = "status"
	keyStatusMore = "statusMore"
)

// KeyArrival is the only data key that every replica writes. The leader writes all others. Its
// value is an RFC 3339 time.
const KeyArrival = "arrival"

// part is the content of one data key. value points to it. An optional part without entries has no
// key in the ConfigMap. entries is the number of entries of an optional part.
type part struct {
	key      string
	value    any
	optional bool
	entries  int
}

// parts returns all parts of the ledger except its version, its arrival and Others. statusMore must
// be decoded after status.
func (l *Ledger) parts() []part {
	more := (*morePart)(&l.Status)
	return []part{
		{keyMoves, &l.Moves, true, len(l.Moves)}, {keyWide, &l.Wide, true, len(l.Wide)}, {ledgerCures, &l.Cures, true, len(l.Cures)},
		{ledgerUnseen, &l.Unseen, true, len(l.Unseen)}, {keyEnds, &l.Ends, true, len(l.Ends)}, {keyGPUs, &l.GPUs, true, len(l.GPUs)},
		{key: KeySlots, value: &l.Slots}, {key: keyRepairs, value: &l.Repairs}, {key: keyOrphans, value: &l.Orphans}, {key: KeyStatus, value: (*firstPart)(&l.Status)},
		{keyStatusMore, more, true, more.entries()},
	}
}

// Encode returns the ConfigMap's data.
func (l *Ledger) Encode() map[string]string {
	data := maps.Clone(l.Others)
	if data == nil {
		data = map[string]string{}
	}
	whole := *l
	whole.Slots, whole.Orphans = append([]Slot{}, l.Slots...), append([]Orphan{}, l.Orphans...) // an empty list is encoded as [], not as null
	for _, p := range whole.parts() {
		if !p.optional || p.entries > 0 {
			data[p.key] = remediations.EncodeJSON(p.value)
		}
	}
	data[keyVersion] = strconv.Itoa(remediations.RecordVersion)
	if !l.Arrival.IsZero() {
		data[KeyArrival] = EncodeArrival(l.Arrival)
	}
	return data
}

// EncodeArrival returns the value of KeyArrival.
func EncodeArrival(at time.Time) string { return at.UTC().Format(time.RFC3339) }

// DecodeArrival decodes the value of KeyArrival. It returns zero and no error if the key is absent.
func DecodeArrival(data map[string]string) (time.Time, error) {
	value, ok := data[KeyArrival]
	if !ok {
		return time.Time{}, nil
	}
	at, _ := time.Parse(time.RFC3339, value) // an invalid value gives the zero time
	if at.UTC().Year() < 1970 || at.UTC().Year() > 9999 {
		return time.Time{}, fmt.Errorf("the ledger's %q is %q, which is not a time in RFC 3339; it counts as never", KeyArrival, text.Line(value, 40))
	}
	return at.UTC().Truncate(time.Second), nil
}

// ErrMalformed means that the ledger's content is not in the form that Drydock writes. A person
// must correct or delete the ConfigMap.
var ErrMalformed = errors.New("the ledger cannot be understood")

// Decode decodes the ConfigMap's data. It keeps fields and keys that this version does not know,
// without interpreting them. An error holds every repair until a person corrects or deletes the
// ConfigMap.
func Decode(data map[string]string) (*Ledger, error) {
	if v := data[keyVersion]; v != strconv.Itoa(remediations.RecordVersion) {
		return nil, fmt.Errorf("%w: it has version %q, this Drydock knows version %d", ErrMalformed, text.Line(v, 20), remediations.RecordVersion)
	}
	l := &Ledger{}
	others := maps.Clone(data)
	delete(others, keyVersion)
	delete(others, KeyArrival)
	for _, p := range l.parts() {
		value, there := data[p.key]
		if delete(others, p.key); !there && p.optional {
			continue
		}
		if err := remediations.DecodeStrict(value, p.value); err != nil {
			return nil, fmt.Errorf("%w: its %q is not readable: %w", ErrMalformed, p.key, err)
		}
	}
	if len(others) > 0 {
		l.Others = others
	}
	for _, o := range l.Orphans {
		if err := o.Record.Validate(nil); err != nil {
			return nil, fmt.Errorf("%w: the orphan of Node %s: %w", ErrMalformed, text.Line(o.Node, 80), err)
		}
	}
	if l.Repairs == nil {
		l.Repairs = map[string][]Begun{}
	}
	l.Arrival, _ = DecodeArrival(data) // even an invalid arrival must not hold repairs
	return l, nil
}

// Clone returns a copy of the ledger, so that a change is lost if it cannot be saved.
func (l *Ledger) Clone() *Ledger {
	c := &Ledger{Slots: slices.Clone(l.Slots), Wide: slices.Clone(l.Wide), Orphans: slices.Clone(l.Orphans), Cures: maps.Clone(l.Cures), Ends: maps.Clone(l.Ends), GPUs: l.GPUs, Unseen: slices.Clone(l.Unseen), Repairs: make(map[string][]Begun, len(l.Repairs)), Others: l.Others, Arrival: l.Arrival, Status: l.Status}
	c.Status.Breakers, c.Status.Exhausted, c.Status.Holds = maps.Clone(l.Status.Breakers), maps.Clone(l.Status.Exhausted), maps.Clone(l.Status.Holds)
	c.Status.Ends, c.Status.Concerns = maps.Clone(l.Status.Ends), maps.Clone(l.Status.Concerns)
	c.Status.BreakGlass, c.Status.Stopped, c.Status.Sidecars = maps.Clone(l.Status.BreakGlass), maps.Clone(l.Status.Stopped), maps.Clone(l.Status.Sidecars)
	for k, v := range l.Repairs {
		c.Repairs[k] = slices.Clone(v)
	}
	for location, moves := range l.Moves {
		if c.Moves == nil {
			c.Moves = make(map[string][]Begun, len(l.Moves))
		}
		c.Moves[location] = slices.Clone(moves)
	}
	return c
}

// FailingAfter is how many exhausted repairs in a row stop a policy.
const FailingAfter = 3

// Failing reports whether the policy is stopped, because its last repairs were all exhausted.
func (l *Ledger) Failing(policy string) bool { return l.Status.Exhausted[policy] >= FailingAfter }

// Allow starts a stopped policy again, after a person's reset.
func (l *Ledger) Allow(policy string) {
	delete(l.Status.Exhausted, policy)
	delete(l.Status.Ends, policy)
	delete(l.Status.Stopped, policy)
}

// Stop stops a policy whose provider will refuse all calls until a person acts.
func (l *Ledger) Stop(policy, why string) {
	if l.Status.Stopped == nil {
		l.Status.Stopped = map[string]string{}
	}
	l.Status.Stopped[policy] = why
}

// Rebuild creates a ledger from the Nodes if the cluster has none, because it is new or because a
// person deleted the ledger.
func Rebuild(c *remediations.Config, nodes []*corev1.Node, now time.Time) *Ledger {
	l := &Ledger{Repairs: map[string][]Begun{}}
	for _, n := range nodes {
		j := c.Registry.ReadJournal(n)
		r := j.Record
		l.rebuildMoves(c, n, j)
		l.rebuildEnds(c, n, j, now)
		l.rebuildWide(c, j)
		for _, e := range j.History {
			if !e.Reset && remediations.KindOf(e.Target) == "" && slices.ContainsFunc(e.Steps, func(done remediations.Attempt) bool { return c.Remediation(done.Name).Disruptive }) {
				l.Repairs[Machine(n)] = append(l.Repairs[Machine(n)], Begun{Repair: e.ID, At: e.Began})
			}
		}
		for _, e := range slices.Backward(j.History) {
			if remediations.KindOf(e.Target) == "" && !e.DidNothing() {
				l.Cured(remediations.MachineOf(n), &e, nil)
			}
		}
		if r != nil && r.Phase == remediations.PhaseExhausted {
			l.Finished(r.Policy, r.ID, remediations.OutcomeExhausted)
			l.RanOut(n, r)
		}
		if r == nil || r.Intent == nil || !c.Remediation(r.Step.Name).Disruptive {
			continue
		}
		if r.Phase != remediations.PhaseExhausted { // the history has an exhausted repair, too
			l.Repairs[Machine(n)] = append(l.Repairs[Machine(n)], Begun{Repair: r.ID, At: r.Began})
		}
		if r.Phase.InFlight() && c.Remediation(r.Step.Name).Replaces {
			l.Orphans = append(l.Orphans, orphan(n, r))
		}
		if from, until := c.Flight(n, r); r.Phase.InFlight() && remediations.InFlightAt(from, until, now) {
			l.Slots = append(l.Slots, nodeSlot(c, n, r, r.Since))
		}
	}
	l.prune(c, now)
	return l
}
