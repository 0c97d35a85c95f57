package inspect

import (
	"slices"
	"strings"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/coverage"
	"drydock.dev/drydock/remediations/lifecycle"
)

// Sources are the inputs of the command why besides the API server.
type Sources struct {
	Config        string
	Alertmanagers []string
}

// Why is the answer of the command why: why Drydock repairs a node or not.
type Why struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Cluster is the cluster that was read.
	Cluster Cluster `json:"cluster,omitzero"`
	Node    string  `json:"node"`
	// Subject names the target that Answer is about. It is empty if Answer is about the node itself.
	Subject string `json:"subject,omitempty"`
	Answer
	// Leader is the leading replica of Drydock.
	Leader Leadership `json:"leader"`
	// Alerts are the alerts about the node. Repairs are its repairs on record. History has its last
	// repairs, the newest first.
	Alerts  []Alert              `json:"alerts"`
	Repairs []Repair             `json:"repairs"`
	History []remediations.Entry `json:"history"`
	// Targets are the answers for sidecars on the node and for its mesh location, if an alert or a
	// waiting repair concerns them.
	Targets []TargetAnswer `json:"targets"`
	// Steps are the steps of Policy's plan or, if Policy is empty, of all policies that could repair
	// the node.
	Steps []coverage.Served `json:"steps,omitempty"`
	// Unseen is what could not be read, and why.
	Unseen []string `json:"unseen"`
}

// Answer says why Drydock repairs one target or not. A target is the node itself or an object on
// it.
type Answer struct {
	// State is one of the constants below.
	State State `json:"state"`
	// Because says why Drydock does nothing although an alert of a policy fires or a fault is visible.
	// In the state Unknown, it says why the state is unknown.
	Because string `json:"because,omitempty"`
	// Hold is why the next step does not begin. Change is what a person may do about that.
	Hold   *Hold  `json:"hold,omitempty"`
	Change string `json:"change,omitempty"`
	// Next is the next step. Provider carries it out. When is a clause that says when the step begins.
	Next     string `json:"next,omitempty"`
	Provider string `json:"provider,omitempty"`
	When     string `json:"when,omitempty"`
	// Guards has the answers of the guards, in Drydock's order. A guard is a check that may hold
	// the next step of Policy's plan.
	Policy string                  `json:"policy,omitempty"`
	Guards []lifecycle.GuardAnswer `json:"guards"`
}

// nothing returns the answer for a target that needs no repair.
func nothing() Answer { return Answer{State: Well, Guards: []lifecycle.GuardAnswer{}} }

// State is the answer in one word: whether a repair of the target is in progress, held or not
// needed.
type State string

const (
	// Well means that Drydock has nothing to do now. The node may still be unhealthy. Because then
	// says why Drydock does nothing.
	Well State = "NothingToDo"
	// Held means that the target needs a repair, and something holds the repair.
	Held State = "Held"
	// UnderRepair means that a repair is in progress or about to begin.
	UnderRepair State = "UnderRepair"
	// Unknown means that no hold was found, but a source that may hold the repair could not be
	// read.
	Unknown State = "Unknown"
)

// Why computes the answer from the observation. It reads nothing more.
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
			t.Because += "; also, Drydock is blind: " + st.Blind
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

// unwritable sets the hold h, because Drydock cannot write on the Node. If neither an alert nor a
// fault is visible, it sets only Because: Drydock could not write an alert on the Node either. It
// also sets only Because if another installation may act in the cluster.
func (s *Observation) unwritable(a *Answer, h *Hold) {
	switch {
	case h.Reason == notInCharge:
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

// doubt sets the state to Unknown if nothing that was read holds the repair, but a source that may
// hold it could not be read.
func (s *Observation) doubt(t *Why) {
	var unread []string
	if s.Ledger.Whole == nil {
		unread = append(unread, "the ledger")
	}
	if s.Config == nil && t.State == UnderRepair {
		unread = append(unread, "Drydock's configuration")
	}
	if s.leader.Unseen != "" && len(unread) > 0 { // alone this does not cause doubt, because an installation may have no Lease
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
		t.Change = "ask an administrator for the rights named below: to get and list ConfigMaps and Leases in Drydock's namespace"
	}
}

// forbidden reports whether the API server refused a read.
func (s *Observation) forbidden() bool {
	return slices.ContainsFunc(s.lines, func(line string) bool { return strings.Contains(line, "is forbidden") })
}

// NoLeader is the reason of the hold if no replica of Drydock leads. No guard returns it, because
// only the leader asks the guards.
const NoLeader = remediations.Reason("NoLeader")

// lead sets the hold NoLeader if no replica leads and the repair would otherwise continue.
func (s *Observation) lead(a *Answer) {
	if s.leader.None != "" && a.State == UnderRepair {
		s.holds(a, &Hold{Reason: NoLeader, Message: s.leader.None}, nil)
		a.When = "once a replica of Drydock leads"
	}
}
