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
	// Slots has the disruptive repairs that run. Each counts against the limits.
	Slots []Slot
	// Repairs has the disruptive repairs that began within limits.repairsWindow, by Machine.
	Repairs map[string][]Begun
	// Moves has when repairs last moved a mesh location's leadership, by location.
	Moves map[string][]Begun
	// Wide has when repairs last changed the whole cluster.
	Wide []Begun
	// Orphans has the repairs that replace their Node's machine, and may continue after the Node is
	// gone.
	Orphans []Orphan
	// Cures has the repairs whose alert may still return, by machine. Unseen has the periods while
	// alerts could not be observed. They do not count toward a policy's relapseWindow.
	Cures  map[string][]Cure
	Unseen []Span
	// GPUs has the largest number that each machine ever had, by GPUMachine. Copies of the ledger
	// share this map, so a change must create a new one.
	GPUs map[string]int
	// Ends has what holds the next repair, by Machine.
	Ends map[string][]End
	// Arrival is when the self-test's alert last reached any replica. Each replica writes it
	// without the compare-and-swap. An unreadable value counts as zero, so that it cannot hold
	// repairs.
	Arrival time.Time
	// Others has the ConfigMap's keys that this version does not know. Encode writes them back.
	Others map[string]string
	// Status is mostly for people. But decisions depend on Breakers, BreakGlass and WentBack, and
	// Exhausted, Ends and Stopped stop policies.
	Status Status
}

// Status is what `kubectl drydock status` prints.
type Status struct {
	Mode remediations.Mode `json:"mode,omitempty"`
	// Limits are the configured ones, by their key below limits.
	Limits map[string]string `json:"limits,omitempty"`
	// BreakGlass has the nodes with drydock.dev/break-glass.
	BreakGlass map[string]BreakGlass `json:"breakGlass,omitempty"`
	// Breakers are those that are not closed, by scope: "cluster" or "zone/<name>".
	Breakers map[string]Breaker `json:"breakers,omitempty"`
	// Blind is why no alert can be trusted, or empty.
	Blind string `json:"blind,omitempty"`
	// WentBack holds all disruptive repairs, because the API server's store returned to an older
	// state.
	WentBack *WentBack `json:"wentBack,omitempty"`
	// Exhausted has the number of failed repairs in a row, by policy.
	Exhausted map[string]int `json:"exhausted,omitempty"`
	// Ends has each policy's last repairs, the oldest first. Exhausted is computed from them.
	Ends map[string][]RepairEnd `json:"ends,omitempty"`
	// Stopped has why a provider will refuse the policy's calls until a person acts.
	Stopped map[string]string `json:"stopped,omitempty"`
	// Sidecars has the pods (namespace/name) whose sidecar repairs are exhausted, with their node.
	// No label selects these Nodes. There are only as many as fit into one sentence.
	Sidecars map[string]string `json:"sidecars,omitempty"`
	// Holds has the messages of the fleet-wide holds, by reason.
	Holds map[remediations.Reason]string `json:"holds,omitempty"`
	// Concerns has the policy, zone or pool of a hold. A hold without one is about every node.
	Concerns map[remediations.Reason]remediations.Concern `json:"concerns,omitempty"`
	SelfTest selftest.Result                              `json:"selfTest,omitzero"`
	// Uncovered has, by step, the Nodes without exactly one provider for it.
	Uncovered map[string]coverage.Lack `json:"uncovered,omitempty"`
	// Admission is about the leading replica's webhook, or nil if it has none.
	Admission *Admission `json:"admission,omitempty"`
	// Aside is why this installation is not in charge of the cluster and changes nothing, or empty.
	Aside string `json:"aside,omitempty"`
	// Denied is why the API server refuses Drydock's own keys on all Nodes. It is empty if it
	// accepts them, or if that is unknown. Limited has a sentence for each other refused kind of
	// write.
	Denied  string   `json:"denied,omitempty"`
	Limited []string `json:"limited,omitempty"`
	// Unwritten has why an alert or a record cannot be written, by Node.
	Unwritten map[string]string `json:"unwritten,omitempty"`
	// Contested has a sentence for each other system that repairs the same Nodes.
	Contested []string `json:"contested,omitempty"`
	// These are fields that a newer Drydock wrote, under KeyStatus and keyStatusMore.
	Unknown     Unknown `json:"-"`
	UnknownMore Unknown `json:"-"`
}

// Admission is when the leading replica's webhook began to serve, and when its last request came.
type Admission struct {
	Serving time.Time `json:"serving"`
	Last    time.Time `json:"last,omitzero"`
}

// admissionApart limits how often the ledger is written for new requests of the webhook.
const admissionApart = 10 * time.Minute

// Same reports whether the difference is not worth a write of the ledger.
func (a *Admission) Same(b *Admission) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Serving.Equal(b.Serving) && a.Last.IsZero() == b.Last.IsZero() && a.Last.Sub(b.Last).Abs() < admissionApart
}

// WentBack is the hold after the API server's store returned to an older state, for example from a
// backup.
type WentBack struct {
	Why   string    `json:"why"`
	Until time.Time `json:"until"`
}

// BreakGlass is a node's annotation: its value, and since when. A new value starts a new hour.
type BreakGlass struct {
	Since time.Time `json:"since"`
	Why   string    `json:"why"`
}

// These are the ConfigMap's keys. keyVersion has the version of the format, each other one a JSON
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

// KeyArrival is the only key that every replica writes, as an RFC 3339 time. The leader writes all
// others.
const KeyArrival = "arrival"

// part is one key of the ConfigMap. value points to a field of Ledger. An optional part without
// entries is left out.
type part struct {
	key      string
	value    any
	optional bool
	entries  int
}

// parts has status before statusMore: Decode must read them in this order.
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

// DecodeArrival returns zero and no error if the key is absent.
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

// ErrMalformed means that a person must correct or delete the ConfigMap.
var ErrMalformed = errors.New("the ledger cannot be understood")

// Decode keeps fields and keys that this version does not know, and does not use them. While it
// returns an error, no repair begins, and a person must correct or delete the ConfigMap.
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

// Clone returns a copy to change, so that the ledger stays as it was if the copy cannot be saved.
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

// FailingAfter is how many failed repairs in a row stop a policy.
const FailingAfter = 3

// Failing reports whether the policy is stopped, because its last repairs have all failed.
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

// Rebuild creates the ledger from the records on the Nodes, for a new cluster or after a person
// deleted the ledger.
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
