package inspect

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/coverage"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/routing"
	nodes "drydock.dev/drydock/remediations/targets/node"
)

// Sources are where why looks beside the API server.
type Sources struct {
	Config        string
	Alertmanagers []string
}

// Why is why a node is repaired, or is not.
type Why struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Node       string `json:"node"`
	// State is one of the three below. Subject is what is held or under repair, if that is not the node itself.
	State   State  `json:"state"`
	Subject string `json:"subject,omitempty"`
	// Because is why nothing is to be done although an alert of a policy fires.
	Because string `json:"because,omitempty"`
	// Leader is the replica that would repair it.
	Leader Leadership `json:"leader"`
	// Hold is what holds the next step, Change what a person may do about it.
	Hold   *Hold  `json:"hold,omitempty"`
	Change string `json:"change,omitempty"`
	// Next is the step that comes next, Provider who carries it out, When a sentence.
	Next     string `json:"next,omitempty"`
	Provider string `json:"provider,omitempty"`
	When     string `json:"when,omitempty"`
	// Alerts are those about the node, Repairs its records, History its last repairs, the newest first.
	Alerts  []Alert              `json:"alerts"`
	Repairs []Repair             `json:"repairs"`
	History []remediations.Entry `json:"history"`
	// Guards are what each guard says of the step of Policy that was considered, in the order in which they are asked.
	Policy string                  `json:"policy,omitempty"`
	Guards []lifecycle.GuardAnswer `json:"guards"`
	// Steps are those of Policy's plan or, where nothing was considered, of all policies that take the node.
	Steps []coverage.Served `json:"steps,omitempty"`
	// Unseen is what could not be seen, and why.
	Unseen []string `json:"unseen"`
}

// State is what comes of all that, for a node.
type State string

const (
	// Well needs nothing.
	Well State = "NothingToDo"
	// Held is not repaired, because something holds it.
	Held State = "Held"
	// UnderRepair is being repaired, or is about to be.
	UnderRepair State = "UnderRepair"
)

// Alert is an alert about the node.
type Alert struct {
	Name        string    `json:"alertname"`
	Fingerprint string    `json:"fingerprint"`
	StartsAt    time.Time `json:"startsAt"`
	// Policy takes it; empty: none does. State is a sentence: that it fires, or who keeps it quiet.
	Policy string `json:"policy,omitempty"`
	State  string `json:"state"`
	// NearMisses are the policies that nearly take it.
	NearMisses []routing.NearMiss `json:"nearMisses,omitempty"`
}

// considered is a candidate for a step with what the guards say of it.
type considered struct {
	*lifecycle.Candidate
	guards []lifecycle.GuardAnswer
}

// Why tells what is seen.
func (s *Observation) Why() Why {
	t := Why{
		APIVersion: APIVersion, Kind: "Why", Node: s.Node.Name, State: Well, Alerts: []Alert{}, Repairs: RepairsOn(s.Node),
		History: remediations.DecodeHistory(s.Node.Annotations[remediations.HistoryKey]), Guards: []lifecycle.GuardAnswer{}, Unseen: append([]string{}, s.lines...),
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
		decided = s.decide(&t)
	}
	s.judge(&t)
	s.lead(&t)
	if t.State == Well && s.State != nil {
		t.Because = s.because(t.Alerts, decided)
	}
	if s.Config != nil {
		t.Steps = coverage.On(s.Config.Core, s.Node, s.Config.Core.PolicyOf(t.Policy, s.Node))
	}
	return t
}

// NoLeader is the hold where no replica of Drydock leads. No guard says it: each is asked by the leader.
const NoLeader = remediations.Reason("NoLeader")

// lead holds what would go on now, where no replica leads.
func (s *Observation) lead(t *Why) {
	t.Leader = s.leader
	if s.leader.None != "" && t.State == UnderRepair {
		s.holds(t, &Hold{Reason: NoLeader, Message: s.leader.None}, nil)
		t.When = "once a replica of Drydock leads"
	}
}

// decide runs Drydock's own decision about the node, and asks the guards about the step that it considers. It returns what the
// decision says if no guard was asked and nothing holds the node.
func (s *Observation) decide(t *Why) string {
	var all []considered
	s.State.Asking = func(c *lifecycle.Candidate) {
		answers := c.Explain(s.unseen)
		for i := range answers {
			answers[i] = s.told(answers[i], c.Policy.Name)
		}
		copied := *c
		all = append(all, considered{&copied, answers})
	}
	d := nodes.Decide(s.State, s.Now)
	if len(all) == 0 {
		if d.Verb != lifecycle.VerbHold && d.Reason != remediations.ReasonObserving {
			return d.Message
		}
		// A repair that was only observed has no step to ask about, but its policy would repair if it enforced.
		s.holds(t, &Hold{Reason: d.Reason, Message: d.Message}, d.Policy)
		return ""
	}
	// Of several alerts the first that may act, or the first that is held; of a plan whose steps were passed over, the last step.
	c := all[len(all)-1]
	if i := slices.IndexFunc(all, func(c considered) bool { return d.Verb == lifecycle.VerbHold && c.heldBy(d.Reason) }); i >= 0 {
		c = all[i]
	}
	t.Policy, t.Guards = c.Policy.Name, c.guards
	t.Next = c.Step.String()
	t.Provider, _ = s.State.Config.ProviderOf(c.Step.Name, s.Node)
	first := lifecycle.FirstHold(c.guards)
	switch {
	case first != nil:
		s.holds(t, &Hold{Reason: first.Reason, Message: first.Message, Until: first.Until}, c.Policy)
	case d.Verb == lifecycle.VerbHold && !slices.ContainsFunc(c.guards, func(a lifecycle.GuardAnswer) bool { return a.Reason == d.Reason }):
		s.holds(t, &Hold{Reason: d.Reason, Message: d.Message}, c.Policy)
	default:
		t.State, t.When = UnderRepair, "as soon as Drydock looks: no guard that was seen holds it"
	}
	return ""
}

// because says why nothing is done for the alerts of policies that fire. Empty: none fires.
func (s *Observation) because(all []Alert, decided string) string {
	onNode := map[string]string{}
	for _, a := range remediations.AlertsOn(s.Node.Annotations) {
		onNode[a.Fingerprint] = a.Status
	}
	var out []string
	for _, a := range all {
		status, known := onNode[a.Fingerprint]
		if a.Policy == "" || (known && status != remediations.StatusFiring) {
			continue
		}
		why := ""
		switch p := s.Config.Core.Policy(a.Policy); {
		case p == nil:
			why = fmt.Sprintf("policy %s is not in Drydock's configuration", a.Policy)
		case p.Mode == remediations.ModeOff:
			why = fmt.Sprintf("policy %s is off", a.Policy)
		case p.Kind != remediations.KindNode:
			why = fmt.Sprintf("policy %s repairs %s, and `kubectl drydock why` explains only the node's own repair", a.Policy, s.Config.Core.Called(p.Kind))
		case !known:
			why = fmt.Sprintf("alert %s is not on the Node yet", a.Name)
		case decided != "":
			why = decided
		default:
			why = fmt.Sprintf("alert %s is %s", a.Name, a.State)
		}
		if !slices.Contains(out, why) {
			out = append(out, why)
		}
	}
	return strings.Join(out, "; ")
}

func (c considered) heldBy(reason remediations.Reason) bool {
	first := lifecycle.FirstHold(c.guards)
	return first != nil && first.Reason == reason
}

func (s *Observation) holds(t *Why, h *Hold, p *remediations.Policy) {
	t.State, t.Hold, t.When = Held, h, "when nothing holds it any more"
	name := ""
	if p != nil {
		name = p.Name
	}
	t.Change = s.change(h, name)
}

// judge says the state by the records, which count before what a decision would be.
func (s *Observation) judge(t *Why) {
	for _, r := range t.Repairs {
		about := ""
		if r.Target != "node" {
			about = r.Name()
		}
		switch {
		case r.Record == nil:
			t.Subject = "" // such a record holds the whole node
			s.holds(t, &Hold{Reason: remediations.ReasonRecordMalformed, Message: r.Problem}, nil)
			return
		case r.Record.Phase.InFlight():
			t.State, t.Subject, t.Hold, t.Change = UnderRepair, about, nil, ""
			s.after(t, r.Record)
			return
		case r.Record.Phase == remediations.PhaseExhausted && r.Target == "node":
			t.State, t.Subject, t.Next, t.When, t.Provider = Held, "", "", "", ""
			t.Hold, t.Change = spent(r.Record), onceMended(t.Node)
			return
		case r.Hold != nil && t.State == Well:
			t.Subject = about
			s.holds(t, r.Hold, s.policy(r.Record.Policy))
		}
	}
	if s.State != nil || t.State != Well {
		return
	}
	// Without the configuration nothing was decided: what the Node and the ledger say is all that is known.
	alerts := Firing(s.Node)
	if len(alerts) == 0 {
		return
	}
	t.State, t.When = UnderRepair, "nothing that was seen holds it"
	if h := s.Ledger.HoldNow(s.Node, alerts[0].Policy, nil, s.Now); h != nil {
		s.holds(t, h, &remediations.Policy{Name: alerts[0].Policy})
	}
}

func (s *Observation) policy(name string) *remediations.Policy {
	if s.Config == nil {
		return &remediations.Policy{Name: name}
	}
	return s.Config.Core.PolicyOf(name, s.Node)
}

// after says what comes after the attempt that is under way.
func (s *Observation) after(t *Why, r *remediations.Record) {
	t.Policy, t.Next, t.Provider, t.Guards = r.Policy, "", "", []lifecycle.GuardAnswer{}
	t.When = "over by " + Stamp(r.Deadline)
	if !r.Deadline.After(s.Now) {
		t.When = "Drydock decides about it now: its time was over at " + Stamp(r.Deadline)
	}
	if s.State == nil || r.Pod != nil || r.Location != "" {
		return
	}
	if p := s.policy(r.Policy); p != nil {
		if next, more := s.State.NextStep(p, r, r.Step); more {
			t.Next = next.String()
			t.Provider, _ = s.State.Config.ProviderOf(next.Name, s.Node)
			t.When = "if the node is not well by " + Stamp(r.Deadline)
			if !r.Deadline.After(s.Now) {
				t.When = "as soon as Drydock looks: the node had until " + Stamp(r.Deadline) + " to be well"
			}
		}
	}
}

// alerts are those that the Node carries, and those about it that Alertmanager has beside them.
func (s *Observation) alerts() (out []Alert) {
	known := map[string]bool{}
	for _, a := range remediations.AlertsOn(s.Node.Annotations) {
		known[a.Fingerprint] = true
		state := a.Status + ", as the Node says"
		t := Alert{Name: a.Name, Fingerprint: a.Fingerprint, StartsAt: a.StartsAt, Policy: a.Policy}
		if s.Asked {
			state = s.said(a.Fingerprint)
			if labels := s.labels(a.Fingerprint); labels != nil {
				t.NearMisses = routing.NearMisses(s.Config.Core, labels, s.State.Fleet.Node)
			}
		}
		t.State = state
		out = append(out, t)
	}
	if !s.Asked {
		return out
	}
	for _, r := range s.State.Snapshot.Replicas {
		for fingerprint, a := range r.Alerts {
			if known[fingerprint] || !s.names(a.Labels) {
				continue
			}
			known[fingerprint] = true
			t := Alert{Name: a.Labels["alertname"], Fingerprint: fingerprint, StartsAt: a.StartsAt, State: s.said(fingerprint)}
			route, why := routing.Of(s.Config.Core, a.Labels, s.State.Fleet.Node)
			if why == remediations.MisrouteNone {
				t.Policy = route.Policy.Name
			}
			t.NearMisses = routing.NearMisses(s.Config.Core, a.Labels, s.State.Fleet.Node)
			out = append(out, t)
		}
	}
	slices.SortStableFunc(out, func(a, b Alert) int { return strings.Compare(a.Name+a.Fingerprint, b.Name+b.Fingerprint) })
	return out
}

// said is what the Alertmanagers say of the alert.
func (s *Observation) said(fingerprint string) string {
	own := s.State.OwnSilence()
	v := s.State.Snapshot.VerdictFor(fingerprint, s.Config.Core, own)
	if v.Reason == "" {
		return "firing"
	}
	return string(v.Reason) + ": " + v.Message
}

func (s *Observation) labels(fingerprint string) map[string]string {
	for _, r := range s.State.Snapshot.Replicas {
		if a, ok := r.Alerts[fingerprint]; ok {
			return a.Labels
		}
	}
	return nil
}
