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
	APIVersion string  `json:"apiVersion"`
	Kind       string  `json:"kind"`
	Cluster    Cluster `json:"cluster,omitzero"`
	Node       string  `json:"node"`
	// Subject is empty if Answer is about the node itself.
	Subject string `json:"subject,omitempty"`
	Answer
	Leader Leadership `json:"leader"`
	// History is newest first.
	Alerts  []Alert              `json:"alerts"`
	Repairs []Repair             `json:"repairs"`
	History []remediations.Entry `json:"history"`
	// Targets are sidecars on the node and its mesh location, if an alert or a waiting repair concerns
	// them.
	Targets []TargetAnswer `json:"targets"`
	// Steps belong to Policy's plan or, if Policy is empty, to all policies that could repair the
	// node.
	Steps  []coverage.Served `json:"steps,omitempty"`
	Unseen []string          `json:"unseen"`
}

// Answer says why Drydock repairs one target or not. A target is the node itself or an object on
// it.
type Answer struct {
	State State `json:"state"`
	// Because says why Drydock does nothing although an alert of a policy fires or a fault is visible,
	// or why the state is unknown.
	Because string `json:"because,omitempty"`
	// Hold is why the next step does not begin. Change is what a person may do about that.
	Hold   *Hold  `json:"hold,omitempty"`
	Change string `json:"change,omitempty"`
	// When is a clause that says when the step begins.
	Next     string `json:"next,omitempty"`
	Provider string `json:"provider,omitempty"`
	When     string `json:"when,omitempty"`
	// Guards are in Drydock's order. A guard is a check that may hold the next step of Policy's plan.
	Policy string                  `json:"policy,omitempty"`
	Guards []lifecycle.GuardAnswer `json:"guards"`
}

func nothing() Answer { return Answer{State: Well, Guards: []lifecycle.GuardAnswer{}} }

// State is whether a repair of the target is in progress, held or not needed.
type State string

const (
	// Well means that Drydock has nothing to do now. The node may still be unhealthy: see Because.
	Well State = "NothingToDo"
	// Held means that the target needs a repair, and something holds it.
	Held        State = "Held"
	UnderRepair State = "UnderRepair"
	// Unknown means that no hold was found, but a source that may hold the repair was not read.
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

// unwritable sets only Because if neither an alert nor a fault is visible: Drydock could not write
// an alert on the Node either. It does the same if another installation may act in the cluster.
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

// doubt sets Unknown if nothing that was read holds the repair, but a source that may hold it could
// not be read.
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

func (s *Observation) forbidden() bool {
	return slices.ContainsFunc(s.lines, func(line string) bool { return strings.Contains(line, "is forbidden") })
}

// NoLeader means that no replica of Drydock leads. No guard returns it, because only the leader
// asks the guards.
const NoLeader = remediations.Reason("NoLeader")

func (s *Observation) lead(a *Answer) {
	if s.leader.None != "" && a.State == UnderRepair {
		s.holds(a, &Hold{Reason: NoLeader, Message: s.leader.None}, nil)
		a.When = "once a replica of Drydock leads"
	}
}
