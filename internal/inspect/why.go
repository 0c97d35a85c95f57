package inspect

import (
	"slices"
	"strings"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/coverage"
	"drydock.dev/drydock/remediations/lifecycle"
)

// Sources are what why reads besides the API server.
type Sources struct {
	Config        string
	Alertmanagers []string
}

// Why is why a node is repaired, or is not.
type Why struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Cluster is the cluster that was read.
	Cluster Cluster `json:"cluster,omitzero"`
	Node    string  `json:"node"`
	// Subject is the object that is held or under repair, if it is not the node itself.
	Subject string `json:"subject,omitempty"`
	Answer
	// Leader is the replica that would repair it.
	Leader Leadership `json:"leader"`
	// Alerts are those about the node, Repairs its records, History its last repairs, the newest
	// first.
	Alerts  []Alert              `json:"alerts"`
	Repairs []Repair             `json:"repairs"`
	History []remediations.Entry `json:"history"`
	// Targets are the answers for the node's sidecars and its mesh location, if an alert or a
	// waiting repair concerns them.
	Targets []TargetAnswer `json:"targets"`
	// Steps are those of Policy's plan or, if no step was considered, of all policies that take the
	// node.
	Steps []coverage.Served `json:"steps,omitempty"`
	// Unseen is what could not be read, and why.
	Unseen []string `json:"unseen"`
}

// Answer is why one target, the node itself or an object on it, is repaired or is not.
type Answer struct {
	// State is one of the constants below.
	State State `json:"state"`
	// Because says why nothing needs to be done although an alert of a policy fires or a fault is
	// visible. For Unknown, it says why the state is unknown.
	Because string `json:"because,omitempty"`
	// Hold is what holds the next step, Change what a person may do about it.
	Hold   *Hold  `json:"hold,omitempty"`
	Change string `json:"change,omitempty"`
	// Next is the next step, Provider carries it out, When is a sentence.
	Next     string `json:"next,omitempty"`
	Provider string `json:"provider,omitempty"`
	When     string `json:"when,omitempty"`
	// Guards are the answers of each guard about the considered step of Policy, in Drydock's order.
	Policy string                  `json:"policy,omitempty"`
	Guards []lifecycle.GuardAnswer `json:"guards"`
}

// nothing returns the answer if nothing needs to be done.
func nothing() Answer { return Answer{State: Well, Guards: []lifecycle.GuardAnswer{}} }

// State is the result for a target.
type State string

const (
	// Well: Drydock has nothing to do now. The node itself may still be unhealthy: see Because.
	Well State = "NothingToDo"
	// Held: not repaired, because something holds the repair.
	Held State = "Held"
	// UnderRepair: being repaired, or about to be.
	UnderRepair State = "UnderRepair"
	// Unknown: nothing that was read holds the target, and not everything that decides could be
	// read.
	Unknown State = "Unknown"
)

// Why returns the answer from what was observed.
func (s *Observation) Why() Why {
	t := Why{
		APIVersion: APIVersion, Kind: "Why", Cluster: s.cluster, Node: s.Node.Name, Answer: nothing(), Alerts: []Alert{}, Repairs: RepairsOn(s.Node), Targets: []TargetAnswer{},
		History: remediations.DecodeHistory(s.Node.Annotations[remediations.HistoryKey]), Unseen: append([]string{}, s.lines...),
	}
	if t.Repairs == nil {
		t.Repairs = []Repair{}
	}
	if t.History == nil {
		t.History = []remediations.Entry{}
	}
	for i, r := range t.Repairs {
		if r.Record != nil && r.Record.Phase == remediations.PhasePending {
			t.Repairs[i].Hold = s.Ledger.HoldNow(s.Node, r.Record.Policy, r.Record, s.Now)
		}
	}
	t.Alerts = append(t.Alerts, s.alerts()...)
	decided := ""
	if s.State != nil {
		decided = s.decide(&t.Answer)
		t.Targets = append(t.Targets, s.targets()...)
	}
	for i := range t.Targets {
		s.lead(&t.Targets[i].Answer)
	}
	s.judge(&t)
	t.Leader = s.leader
	s.lead(&t.Answer)
	if t.State == Well {
		t.Because = s.because(t.Alerts, t.Targets, decided)
		if st := s.Ledger.Status; t.Because != "" && st != nil && st.Blind != "" {
			t.Because += "; besides, Drydock is blind: " + st.Blind
		}
	}
	if h := s.Ledger.Unwritten(s.Node); h != nil {
		s.unwritable(&t.Answer, h)
	}
	s.people(&t)
	s.doubt(&t)
	if s.Config != nil {
		t.Steps = coverage.On(s.Config.Core, s.Node, s.Config.Core.PolicyOf(t.Policy, s.Node))
	}
	return t
}

// unwritable holds a needed repair if Drydock cannot write on the Node. It says so even if no
// repair is needed: the Node cannot show then whether an alert fires. If another Drydock is in
// charge, that one decides.
func (s *Observation) unwritable(a *Answer, h *Hold) {
	switch {
	case h.Reason == NotInCharge:
		*a = nothing()
		a.Because = h.Message
	case a.State == Well && a.Because == "":
		a.Because = h.Message
	default:
		s.holds(a, h, s.policy(a.Policy))
		a.Because = ""
		if a.Next == "" {
			a.When = ""
		}
	}
}

// doubt sets the state to Unknown if nothing that was read holds the node but not everything that
// decides could be read.
func (s *Observation) doubt(t *Why) {
	var unread []string
	if s.Ledger.Whole == nil {
		unread = append(unread, "the ledger")
	}
	if s.Config == nil && t.State == UnderRepair {
		unread = append(unread, "Drydock's configuration")
	}
	if s.leader.Unseen != "" && len(unread) > 0 { // alone it is not a reason: an installation may have no Lease
		unread = append(unread, "the Lease of the leading replica")
	}
	switch {
	case len(unread) == 0, t.State == Held, t.inFlight() != nil, t.Leader.None != "", s.Ledger.Said(s.Node, s.Now) != nil:
		return
	case s.Ledger.Aside == "":
		last := len(unread) - 1
		missing := strings.Join(unread[:last], ", ") + " and "
		missing = strings.TrimPrefix(missing, " and ") + unread[last] + " could not be read"
		t.Because = strings.Join(append(t.firing(), missing), "; ")
	}
	if t.State, t.Next, t.When, t.Provider = Unknown, "", "", ""; s.forbidden() {
		t.Change = "ask an administrator for the rights that are named below: to get and list ConfigMaps and Leases in Drydock's namespace"
	}
}

// forbidden reports whether the API server refused to show something.
func (s *Observation) forbidden() bool {
	return slices.ContainsFunc(s.lines, func(line string) bool { return strings.Contains(line, "is forbidden") })
}

// NoLeader is the hold if no replica of Drydock leads. No guard returns it: only the leader asks
// the guards.
const NoLeader = remediations.Reason("NoLeader")

// lead holds a repair that would continue now, if no replica leads.
func (s *Observation) lead(a *Answer) {
	if s.leader.None != "" && a.State == UnderRepair {
		s.holds(a, &Hold{Reason: NoLeader, Message: s.leader.None}, nil)
		a.When = "once a replica of Drydock leads"
	}
}
