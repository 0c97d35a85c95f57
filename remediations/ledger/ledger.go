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
	// Slots has the disruptive repairs in the phases Acting and Verifying. Each counts against the
	// limits.
	Slots []Slot
	// Repairs has the disruptive repairs that began within limits.repairsWindow. The key is the
	// result of Machine.
	Repairs map[string][]Begun
	// Moves has the repairs that recently moved the leadership of a mesh location, each with the
	// time of its last move. The key is the location.
	Moves map[string][]Begun
	// Wide has the repairs that recently changed the whole cluster, each with the time of its last
	// change.
	Wide []Begun
	// Orphans has the repairs that replace the machine of their Node. Such a repair may continue
	// after its Node is gone.
	Orphans []Orphan
	// Cures has the repairs that cured a machine and whose alert may still return, one for each
	// policy. The key is the machine. Unseen has the periods while Drydock could not observe
	// alerts. They do not count toward a policy's relapseWindow.
	Cures  map[string][]Cure
	Unseen []Span
	// GPUs has the largest number of GPUs that each machine ever had. The key is the result of
	// GPUMachine. Copies of the ledger share this map, so a change must create a new map.
	GPUs map[string]int
	// Ends has the end of each policy's last repair of a machine, and the repairs that a person
	// cancelled. The key is the result of Machine.
	Ends map[string][]End
	// Arrival is when the self-test's alert last reached any replica, or zero. Each replica writes
	// it without the compare-and-swap. An unreadable value counts as zero, so that it cannot hold
	// repairs.
	Arrival time.Time
	// Others has the keys of the ConfigMap that this version of Drydock does not know, and their
	// values. Encode writes them back.
	Others map[string]string
	// Status is mostly for people. Decisions also depend on Breakers, BreakGlass and WentBack.
	// Exhausted, Ends and Stopped stop policies.
	Status Status
}

// Status is what `kubectl drydock status` prints.
type Status struct {
	Mode remediations.Mode `json:"mode,omitempty"`
	// Limits are the configured limits. A key is the limit's key below limits in the configuration.
	Limits map[string]string `json:"limits,omitempty"`
	// BreakGlass has the nodes with the annotation drydock.dev/break-glass, by the node's name.
	BreakGlass map[string]BreakGlass `json:"breakGlass,omitempty"`
	// Breakers are the breakers that are not closed, by scope: "cluster" or "zone/<name>".
	Breakers map[string]Breaker `json:"breakers,omitempty"`
	// Blind is why Drydock cannot trust any alert. It is empty if Drydock can trust them.
	Blind string `json:"blind,omitempty"`
	// WentBack is set while all disruptive repairs are held because the API server's store returned
	// to an older state.
	WentBack *WentBack `json:"wentBack,omitempty"`
	// Exhausted has the number of failed repairs in a row, by policy. A repair fails if it is
	// exhausted or if its cure does not last.
	Exhausted map[string]int `json:"exhausted,omitempty"`
	// Ends has the ends of the last repairs of each policy, the oldest first. Drydock computes
	// Exhausted from them.
	Ends map[string][]RepairEnd `json:"ends,omitempty"`
	// Stopped has the policies whose calls the provider will refuse until a person acts. The key is
	// the policy, and the value is the reason.
	Stopped map[string]string `json:"stopped,omitempty"`
	// Sidecars has the pods whose sidecar repairs are exhausted. The key is namespace/name of the
	// pod, and the value is its node. The ledger has them because no label selects their Nodes.
	// Their number is limited to what fits into one sentence.
	Sidecars map[string]string `json:"sidecars,omitempty"`
	// Holds has the messages of the holds that affect the whole fleet, by reason.
	Holds map[remediations.Reason]string `json:"holds,omitempty"`
	// Concerns has the policy, zone or pool that a hold in Holds is about. A hold without an entry
	// here is about every node.
	Concerns map[remediations.Reason]remediations.Concern `json:"concerns,omitempty"`
	// SelfTest is the state of the connection to Alertmanager.
	SelfTest selftest.Result `json:"selfTest,omitzero"`
	// Uncovered has, for each step, the Nodes that do not have exactly one provider for the step.
	Uncovered map[string]coverage.Lack `json:"uncovered,omitempty"`
	// Admission is the state of the leading replica's webhook, or nil if it has no webhook.
	Admission *Admission `json:"admission,omitempty"`
	// Aside is why this installation is not in charge of the cluster, so that it changes nothing.
	// It is empty if the installation is in charge.
	Aside string `json:"aside,omitempty"`
	// Denied is why the API server refuses Drydock's writes of its own keys on all Nodes. It is
	// empty if the API server accepts them, or if that is unknown. Limited has one sentence for
	// each other kind of write on Nodes that the API server refuses.
	Denied  string   `json:"denied,omitempty"`
	Limited []string `json:"limited,omitempty"`
	// Unwritten has the reason why Drydock cannot write an alert or a record on a Node, for each
	// such Node. The key is the Node's name.
	Unwritten map[string]string `json:"unwritten,omitempty"`
	// Contested has one sentence for each other system that repairs the same Nodes as Drydock's
	// policies.
	Contested []string `json:"contested,omitempty"`
	// Unknown and UnknownMore are fields that a newer Drydock wrote. Unknown is from the data key
	// KeyStatus, and UnknownMore is from keyStatusMore.
	Unknown     Unknown `json:"-"`
	UnknownMore Unknown `json:"-"`
}

// Admission describes the webhook of the leading replica. Serving is when it began to serve. Last
// is when its last request came, or zero.
type Admission struct {
	Serving time.Time `json:"serving"`
	Last    time.Time `json:"last,omitzero"`
}

// admissionApart limits how often the ledger is written for new requests of the webhook. The new
// request must be this much later than the stored one.
const admissionApart = 10 * time.Minute

// Same reports whether a and b differ so little that the ledger need not be written again.
func (a *Admission) Same(b *Admission) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Serving.Equal(b.Serving) && a.Last.IsZero() == b.Last.IsZero() && a.Last.Sub(b.Last).Abs() < admissionApart
}

// WentBack is the hold after the API server's store returned to an older state, for example from a
// backup. Why describes that, and the hold ends at Until.
type WentBack struct {
	Why   string    `json:"why"`
	Until time.Time `json:"until"`
}

// BreakGlass is the drydock.dev/break-glass annotation of a node. Why is its value, and Since is
// when it got this value. Break-glass lasts for one hour, and a new value starts a new hour.
type BreakGlass struct {
	Since time.Time `json:"since"`
	Why   string    `json:"why"`
}

// These are the data keys of the ConfigMap. keyVersion has the version of the format, and each
// other key has one JSON value.
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

// KeyArrival is the only data key that every replica writes, as an RFC 3339 time. The leader writes
// all other keys.
const KeyArrival = "arrival"

// part describes one data key of the ConfigMap. value points to the field of Ledger with its
// content. An optional part without entries is left out of the ConfigMap. entries is counted only
// for optional parts.
type part struct {
	key      string
	value    any
	optional bool
	entries  int
}

// parts returns all parts of the ledger except the version, Arrival and Others. Decode must read
// status before statusMore.
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

// ErrMalformed means that Drydock cannot read the ledger. A person must correct or delete the
// ConfigMap.
var ErrMalformed = errors.New("the ledger cannot be understood")

// Decode decodes the ConfigMap's data. It keeps fields and keys that this version does not know,
// but does not use them. While Decode returns an error, no repair begins; a person must correct or
// delete the ConfigMap.
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

// Clone returns a copy of the ledger. The caller changes the copy, so that the ledger stays as it
// was if the copy cannot be saved.
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

// Rebuild creates the ledger from the records on the Nodes. It is for a cluster without a ledger,
// because the cluster is new or a person deleted the ledger.
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
