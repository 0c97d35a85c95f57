package apiserver

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
)

// Bounds of what the journal of rescues keeps.
const (
	// maxEnded is how many ended rescues it knows: many more than limits.repairsPerNode lets begin in its window.
	maxEnded = 100
	// MaxControlPlaneHosts is how many hosts a configuration may name, and one rescue restarts.
	MaxControlPlaneHosts = 64
	// maxEntryBytes bounds one line; a longer one was not written by Drydock.
	maxEntryBytes = 256 << 10
)

// Rescue is the repair of the API servers, as the journal in the state directory has it. There is one at a time.
type Rescue struct {
	V      int                `json:"v"`
	ID     string             `json:"id"`
	Policy string             `json:"policy"`
	Cause  remediations.Cause `json:"cause"`
	Phase  remediations.Phase `json:"phase"`
	// Began is when it was first recorded, Since when its phase began, Deadline when the phase is over; Over when all of it
	// is, from the first intent on.
	Began    time.Time `json:"began"`
	Since    time.Time `json:"since"`
	Deadline time.Time `json:"deadline"`
	Over     time.Time `json:"over,omitzero"`
	// Hosts are the attempts that were issued, oldest first. The last one is the intent, while Acting.
	Hosts []HostTry `json:"hosts,omitempty"`
	// Issued counts all intents, so that no two of them bear one name: one that was withheld leaves no attempt behind.
	Issued int                `json:"issued,omitempty"`
	Hold   *remediations.Hold `json:"hold,omitempty"`
	// Observed is the restart that would have been issued if the policy did not only observe. Absent: there was none.
	Observed *HostTry `json:"observed,omitempty"`
}

// HostTry is one attempt to restart a host's kubelet. Without an outcome it counts as issued.
type HostTry struct {
	Host string `json:"host"`
	// Attempt is the intent's id, and in the name of what runs on the host.
	Attempt string                   `json:"attempt"`
	At      time.Time                `json:"at"`
	Outcome remediations.CallOutcome `json:"outcome,omitempty"`
	Why     string                   `json:"why,omitempty"`
	// Evidence is what the host last said of the unit before it was restarted.
	Evidence string `json:"evidence,omitempty"`
}

// EndedRescue is a rescue that is over.
type EndedRescue struct {
	remediations.Entry
	Hosts []HostTry `json:"hosts,omitempty"`
	// ObservedOn is the host whose kubelet would have been restarted if the policy did not only observe.
	ObservedOn string `json:"observedOn,omitempty"`
}

// RescueEntry is one line of the journal. It has exactly one of its parts.
type RescueEntry struct {
	// Rescue is the rescue as it is from here on, Dropped the one that ended without a trace.
	Rescue  *Rescue `json:"rescue,omitempty"`
	Dropped string  `json:"dropped,omitempty"`
	// Ended is how it ended. One that ran out of hosts stays on record beside it.
	Ended *EndedRescue `json:"ended,omitempty"`
	// Told is an ended rescue that the history of a Node has by now.
	Told *RescueTold `json:"told,omitempty"`
	// Reset is a person's word: what ran out is forgotten, and the counts with it.
	Reset bool `json:"reset,omitempty"`
}

// RescueTold says that the Node's history has the rescue, or that there is no such Node.
type RescueTold struct {
	ID   string `json:"id"`
	Node string `json:"node"`
}

// RescueJournal is all that the state directory holds, decoded.
type RescueJournal struct {
	Rescue *Rescue
	// Malformed is why the journal cannot be read; the rest of it means nothing then.
	Malformed error
	// Ended are the rescues that are over, newest first.
	Ended []EndedRescue
	// Told are the nodes whose histories have them, by the rescue's id.
	Told map[string][]string
	// Forgotten is the rescue from which on, and before, nothing counts any more: a person reset it. Empty: all counts.
	Forgotten string
	// Paused is what the file of that name holds; nil: there is none. Reset: a person wants what ran out forgotten.
	Paused *string
	Reset  bool
}

// DecodeRescueEntry reads one line of the journal. Anything that this version would not itself have written is an error.
func DecodeRescueEntry(text string) (RescueEntry, error) {
	var e RescueEntry
	if len(text) > maxEntryBytes {
		return e, fmt.Errorf("the entry has %d bytes, Drydock writes at most %d", len(text), maxEntryBytes)
	}
	if err := remediations.DecodeStrict(text, &e); err != nil {
		return RescueEntry{}, fmt.Errorf("the entry is not readable: %w", err)
	}
	return e, e.validate()
}

// Encode gives the line.
func (e RescueEntry) Encode() string { return remediations.EncodeJSON(e) }

func (e RescueEntry) validate() error {
	parts := 0
	for _, there := range []bool{e.Rescue != nil, e.Dropped != "", e.Ended != nil, e.Told != nil, e.Reset} {
		if there {
			parts++
		}
	}
	switch {
	case parts != 1:
		return fmt.Errorf("the entry has %d parts, and every one has exactly one", parts)
	case e.Rescue != nil:
		return e.Rescue.validate()
	case e.Ended != nil && (e.Ended.ID == "" || e.Ended.Policy == "" || !slices.Contains(remediations.Outcomes, e.Ended.Outcome) || e.Ended.Ended.IsZero()):
		return fmt.Errorf("the ended rescue lacks its id, its policy, its outcome or its end")
	case e.Ended != nil && (e.Ended.Outcome == remediations.OutcomeObserved) != (e.Ended.ObservedOn != "" && e.Ended.Would != nil):
		return fmt.Errorf("the ended rescue was observed and does not say what, or the reverse")
	case e.Ended != nil && e.Ended.ObservedOn != "" && remediations.ValidNodeName(e.Ended.ObservedOn) != nil:
		return fmt.Errorf("the ended rescue was observed on a host without a name")
	case e.Ended != nil:
		return validateTries(e.Ended.Hosts)
	case e.Told != nil && (e.Told.ID == "" || remediations.ValidNodeName(e.Told.Node) != nil):
		return fmt.Errorf("the entry names no rescue or no node")
	}
	return nil
}

func (r *Rescue) validate() error {
	switch r.Phase {
	case remediations.PhasePending, remediations.PhaseActing, remediations.PhaseVerifying, remediations.PhaseExhausted:
	default:
		return fmt.Errorf("the rescue's phase %q is unknown", text.Line(string(r.Phase), 40))
	}
	switch {
	case r.V != remediations.RecordVersion:
		return fmt.Errorf("the rescue has version %d, this Drydock knows version %d", r.V, remediations.RecordVersion)
	case r.ID == "" || r.Policy == "" || r.Cause.Alert == "" || r.Cause.Request != "":
		return fmt.Errorf("the rescue lacks its id, its policy or its alert")
	case r.Began.IsZero() || r.Since.IsZero() || (r.Phase != remediations.PhaseExhausted && r.Deadline.IsZero()):
		return fmt.Errorf("the rescue has no beginning, no since or no deadline")
	case r.Phase != remediations.PhasePending && (len(r.Hosts) == 0 || r.Over.IsZero()):
		return fmt.Errorf("the rescue is %s and has no attempt, or no end", r.Phase)
	case r.Issued < len(r.Hosts) || len(r.Hosts) > MaxControlPlaneHosts:
		return fmt.Errorf("the rescue has %d attempts of %d that were issued", len(r.Hosts), r.Issued)
	}
	if r.Observed != nil {
		if err := validateTries([]HostTry{*r.Observed}); err != nil {
			return err
		}
	}
	for i, t := range r.Hosts {
		if (t.Outcome == "") != (r.Phase == remediations.PhaseActing && i == len(r.Hosts)-1) {
			return fmt.Errorf("the attempt %s lacks its outcome, or has it too early", text.Line(t.Attempt, 80))
		}
	}
	return validateTries(r.Hosts)
}

func validateTries(tries []HostTry) error {
	for _, t := range tries {
		switch {
		case remediations.ValidNodeName(t.Host) != nil || t.Attempt == "" || t.At.IsZero():
			return fmt.Errorf("an attempt on host %q has no name or no time", text.Line(t.Host, 80))
		case t.Outcome != "" && t.Outcome != remediations.CallAccepted && t.Outcome != remediations.CallRefused && t.Outcome != remediations.CallUnknown:
			return fmt.Errorf("the attempt %s has the outcome %q, which is none", text.Line(t.Attempt, 80), text.Line(string(t.Outcome), 40))
		}
	}
	return nil
}

// last is the attempt that was issued last; nil: none was.
func (r *Rescue) last() *HostTry {
	if len(r.Hosts) == 0 {
		return nil
	}
	return &r.Hosts[len(r.Hosts)-1]
}

func (r *Rescue) tried(host string) bool {
	return slices.ContainsFunc(r.Hosts, func(t HostTry) bool { return t.Host == host })
}

func (r *Rescue) clone() *Rescue {
	c := *r
	c.Hosts = slices.Clone(r.Hosts)
	if r.Hold != nil {
		h := *r.Hold
		c.Hold = &h
	}
	if r.Observed != nil {
		o := *r.Observed
		c.Observed = &o
	}
	return &c
}

// With is the journal with one entry more. The one that it is called on stays as it was.
func (j RescueJournal) With(e RescueEntry) RescueJournal {
	switch {
	case e.Rescue != nil:
		j.Rescue = e.Rescue.clone()
	case e.Dropped != "" && j.Rescue != nil && j.Rescue.ID == e.Dropped:
		j.Rescue = nil
	case e.Ended != nil:
		j.Ended = append([]EndedRescue{*e.Ended}, j.Ended...)
		j.Ended = j.Ended[:min(len(j.Ended), maxEnded)]
		if j.Rescue != nil && j.Rescue.ID == e.Ended.ID && j.Rescue.Phase != remediations.PhaseExhausted {
			j.Rescue = nil
		}
	case e.Told != nil:
		j.Told = maps.Clone(j.Told)
		if j.Told == nil {
			j.Told = map[string][]string{}
		}
		j.Told[e.Told.ID] = append(slices.Clone(j.Told[e.Told.ID]), e.Told.Node)
	case e.Reset:
		if len(j.Ended) > 0 {
			j.Forgotten = j.Ended[0].ID
		}
		if j.Rescue != nil && j.Rescue.Phase == remediations.PhaseExhausted {
			j.Rescue = nil
		}
	}
	return j
}

// Entries are the fewest that give the journal again.
func (j RescueJournal) Entries() []RescueEntry {
	var out []RescueEntry
	for _, e := range slices.Backward(j.Ended) {
		out = append(out, RescueEntry{Ended: &e})
		if e.ID == j.Forgotten {
			out = append(out, RescueEntry{Reset: true})
		}
		for _, node := range j.Told[e.ID] {
			out = append(out, RescueEntry{Told: &RescueTold{ID: e.ID, Node: node}})
		}
	}
	if j.Rescue != nil {
		out = append(out, RescueEntry{Rescue: j.Rescue})
	}
	return out
}

// begun counts the rescues that restarted something on the host in the window, other than the one named. What was surely
// refused restarted nothing.
func (j RescueJournal) begun(host, except string, now time.Time, window time.Duration) (count int, oldest time.Time) {
	for _, e := range j.Ended {
		if e.ID == j.Forgotten {
			break
		}
		for _, t := range e.Hosts {
			if t.Host == host && t.Outcome != remediations.CallRefused && e.ID != except && now.Sub(t.At) < window {
				count++
				if oldest.IsZero() || t.At.Before(oldest) {
					oldest = t.At
				}
				break
			}
		}
	}
	return count, oldest
}

// Untold are the hosts of the ended rescue whose Nodes do not have it in their histories yet.
func (j RescueJournal) Untold(e EndedRescue) []string {
	var out []string
	if on := e.ObservedOn; on != "" && !slices.Contains(j.Told[e.ID], on) {
		out = append(out, on)
	}
	for _, t := range e.Hosts {
		if !slices.Contains(j.Told[e.ID], t.Host) && !slices.Contains(out, t.Host) {
			out = append(out, t.Host)
		}
	}
	return out
}

// Of is the ended rescue as the history of one of its hosts' Nodes has it.
func (e EndedRescue) Of(host string) remediations.Entry {
	out := e.Entry
	out.Target, out.Evidence = string(remediations.KindAPIServer), ""
	for _, t := range e.Hosts {
		if t.Host == host {
			out.Evidence = t.Evidence
			out.Why = text.Line(fmt.Sprintf("%s: %s; %s", t.Attempt, outcomeOf(t), e.Why), 300)
		}
	}
	return out
}

// outcomeOf is what became of an attempt, for people.
func outcomeOf(t HostTry) string {
	if t.Why == "" {
		return string(t.Outcome)
	}
	return string(t.Outcome) + ": " + t.Why
}
