package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"drydock.dev/drydock/internal/cli"
	"drydock.dev/drydock/remediations"
	nodes "drydock.dev/drydock/remediations/targets/node"
)

// The exit codes of why, beside 0: nothing is to be done.
const (
	exitHeld        = cli.Exit(3)
	exitUnderRepair = cli.Exit(4)
)

// sources are where why looks beside the API server.
type sources struct {
	config        string
	alertmanagers []string
}

// story is why a node is repaired, or is not.
type story struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Node       string `json:"node"`
	// State is one of the three below.
	State nodeState `json:"state"`
	// Leader is the replica that would repair it.
	Leader leadership `json:"leader"`
	// Hold is what holds the next step, Change what a person may do about it.
	Hold   *hold  `json:"hold,omitempty"`
	Change string `json:"change,omitempty"`
	// Next is the step that comes next, Provider who carries it out, When a sentence.
	Next     string `json:"next,omitempty"`
	Provider string `json:"provider,omitempty"`
	When     string `json:"when,omitempty"`
	// Alerts are those about the node, Repairs its records, History its last repairs, the newest first.
	Alerts  []toldAlert          `json:"alerts"`
	Repairs []repair             `json:"repairs"`
	History []remediations.Entry `json:"history"`
	// Guards are what each guard says of the step of Policy that was considered, in the order in which they are asked.
	Policy string                     `json:"policy,omitempty"`
	Guards []remediations.GuardAnswer `json:"guards"`
	// Unseen is what could not be seen, and why.
	Unseen []string `json:"unseen"`
}

type nodeState string

const (
	wellNode     nodeState = "NothingToDo"
	heldNode     nodeState = "Held"
	repairedNode nodeState = "UnderRepair"
)

// toldAlert is an alert about the node.
type toldAlert struct {
	Name        string    `json:"alertname"`
	Fingerprint string    `json:"fingerprint"`
	StartsAt    time.Time `json:"startsAt"`
	// Policy takes it; empty: none does. State is a sentence: that it fires, or who keeps it quiet.
	Policy string `json:"policy,omitempty"`
	State  string `json:"state"`
	// NearMisses are the policies that nearly take it.
	NearMisses []remediations.NearMiss `json:"nearMisses,omitempty"`
}

func (p *plugin) newWhyCommand() *cobra.Command {
	var o output
	var from sources
	cmd := &cobra.Command{
		Use:   "why NODE [--alertmanager URL] [--config FILE] [-o wide|json|yaml]",
		Short: "Say why a node is repaired, or why it is not",
		Long: "Why decides about the node as Drydock does, by what you may read. It prints the state first: what holds the repair,\n" +
			"until when, and what you can do about it. Then come the alerts about the node, the policy that takes each, the step\n" +
			"that comes next, the last repairs, and what each guard says with its own value. What it could not see it names; a\n" +
			"guard that rests on that is never shown as passed. Where no replica of Drydock leads, that comes first.\n\n" +
			"It exits with 0 where nothing is to be done, with 3 where a repair is held, and with 4 where one is under way.",
		Example: "  kubectl drydock why node-3\n  kubectl drydock why node-3 --alertmanager http://localhost:9093",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return err
			}
			c, err := p.connect()
			if err != nil {
				return err
			}
			s, err := p.look(cmd.Context(), c, args[0], from)
			if err != nil {
				return err
			}
			told := s.story()
			if o.to != nil {
				err = o.print(told, p.Out)
			} else {
				p.printStory(told, s.now, o.wide())
			}
			switch {
			case err != nil:
				return err
			case told.State == heldNode:
				return exitHeld
			case told.State == repairedNode:
				return exitUnderRepair
			}
			return nil
		},
	}
	o.bind(cmd)
	cmd.Flags().StringArrayVar(&from.alertmanagers, "alertmanager", nil, "address of an Alertmanager to ask, as seen from here; may be given several times. Without it none is asked")
	cmd.Flags().StringVar(&from.config, "config", "", "Drydock's configuration; without it, the ConfigMap of Drydock's chart is read")
	cmd.Flags().StringVar(&p.ledger, "ledger", ledgerName, "name of the ledger's ConfigMap")
	return cmd
}

// considered is a candidate for a step with what the guards say of it.
type considered struct {
	*remediations.Candidate
	guards []remediations.GuardAnswer
}

// story tells what is seen.
func (s *sight) story() story {
	t := story{
		APIVersion: apiVersion, Kind: "Why", Node: s.node.Name, State: wellNode, Alerts: []toldAlert{}, Repairs: repairsOn(s.node),
		History: remediations.DecodeHistory(s.node.Annotations[remediations.HistoryKey]), Guards: []remediations.GuardAnswer{}, Unseen: append([]string{}, s.lines...),
	}
	if t.Repairs == nil {
		t.Repairs = []repair{}
	}
	if t.History == nil {
		t.History = []remediations.Entry{}
	}
	for i, r := range t.Repairs {
		if r.Record != nil && r.Record.Phase == remediations.Pending {
			t.Repairs[i].Hold = s.ledger.holdNow(s.node, r.Record.Policy, r.Record, s.now)
		}
	}
	t.Alerts = append(t.Alerts, s.alerts()...)
	if s.state != nil {
		s.decide(&t)
	}
	s.judge(&t)
	s.lead(&t)
	return t
}

// noLeader is the hold where no replica of Drydock leads. No guard says it: each is asked by the leader.
const noLeader = remediations.Reason("NoLeader")

// lead holds what would go on now, where no replica leads.
func (s *sight) lead(t *story) {
	t.Leader = s.leader
	if s.leader.None != "" && t.State == repairedNode {
		s.holds(t, &hold{Reason: noLeader, Message: s.leader.None}, nil)
		t.When = "once a replica of Drydock leads"
	}
}

// decide runs Drydock's own decision about the node, and asks the guards about the step that it considers.
func (s *sight) decide(t *story) {
	var all []considered
	s.state.Asking = func(c *remediations.Candidate) {
		answers := c.Explain(s.unseen)
		for i := range answers {
			answers[i] = s.told(answers[i], c.Policy.Name)
		}
		copied := *c
		all = append(all, considered{&copied, answers})
	}
	d := nodes.Decide(s.state, s.now)
	if len(all) == 0 {
		if d.Verb == remediations.Keep {
			s.holds(t, &hold{Reason: d.Reason, Message: d.Message}, d.Policy)
		}
		return
	}
	// Of several alerts the first that may act, or the first that is held; of a plan whose steps were passed over, the last step.
	c := all[len(all)-1]
	if i := slices.IndexFunc(all, func(c considered) bool { return d.Verb == remediations.Keep && c.heldBy(d.Reason) }); i >= 0 {
		c = all[i]
	}
	t.Policy, t.Guards = c.Policy.Name, c.guards
	t.Next = c.Step.String()
	t.Provider, _ = s.state.Config.ProviderOf(c.Step.Name, s.node)
	first := remediations.FirstHold(c.guards)
	switch {
	case first != nil:
		s.holds(t, &hold{Reason: first.Reason, Message: first.Message, Until: first.Until}, c.Policy)
	case d.Verb == remediations.Keep && !slices.ContainsFunc(c.guards, func(a remediations.GuardAnswer) bool { return a.Reason == d.Reason }):
		s.holds(t, &hold{Reason: d.Reason, Message: d.Message}, c.Policy)
	default:
		t.State, t.When = repairedNode, "as soon as Drydock looks: no guard that was seen holds it"
	}
}

func (c considered) heldBy(reason remediations.Reason) bool {
	first := remediations.FirstHold(c.guards)
	return first != nil && first.Reason == reason
}

func (s *sight) holds(t *story, h *hold, p *remediations.Policy) {
	t.State, t.Hold, t.When = heldNode, h, "when nothing holds it any more"
	name := ""
	if p != nil {
		name = p.Name
	}
	t.Change = s.change(h, name)
}

// judge says the state by the records, which count before what a decision would be.
func (s *sight) judge(t *story) {
	for _, r := range t.Repairs {
		switch {
		case r.Record == nil:
			s.holds(t, &hold{Reason: remediations.RecordMalformed, Message: r.Problem}, nil)
			return
		case r.Record.Phase.InFlight():
			t.State, t.Hold, t.Change = repairedNode, nil, ""
			s.after(t, r.Record)
			return
		case r.Record.Phase == remediations.Exhausted && r.Target == "node":
			t.State, t.Next, t.When, t.Provider = heldNode, "", "", ""
			t.Hold = &hold{Reason: remediations.Reason(remediations.Exhausted), Message: fmt.Sprintf("repair %s ran out of steps, and a person must look%s", r.Record.ID, leftWith(r.Record))}
			t.Change = "once the node is mended: kubectl drydock reset " + t.Node
			return
		case r.Hold != nil && t.State == wellNode:
			s.holds(t, r.Hold, s.policy(r.Record.Policy))
		}
	}
	if s.state != nil || t.State != wellNode {
		return
	}
	// Without the configuration nothing was decided: what the Node and the ledger say is all that is known.
	alerts := firing(s.node)
	if len(alerts) == 0 {
		return
	}
	t.State, t.When = repairedNode, "nothing that was seen holds it"
	if h := s.ledger.holdNow(s.node, alerts[0].Policy, nil, s.now); h != nil {
		s.holds(t, h, &remediations.Policy{Name: alerts[0].Policy})
	}
}

func (s *sight) policy(name string) *remediations.Policy {
	if s.config == nil {
		return &remediations.Policy{Name: name}
	}
	return s.config.Core.PolicyOf(name, s.node)
}

// after says what comes after the attempt that is under way.
func (s *sight) after(t *story, r *remediations.Record) {
	t.Policy, t.Next, t.Provider, t.Guards = r.Policy, "", "", []remediations.GuardAnswer{}
	t.When = "over by " + stamp(r.Deadline)
	if !r.Deadline.After(s.now) {
		t.When = "Drydock decides about it now: its time was over at " + stamp(r.Deadline)
	}
	if s.state == nil || r.Pod != nil || r.Location != "" {
		return
	}
	if p := s.policy(r.Policy); p != nil {
		if next, more := s.state.NextStep(p, r.Step); more {
			t.Next = next.String()
			t.Provider, _ = s.state.Config.ProviderOf(next.Name, s.node)
			t.When = "if the node is not well by " + stamp(r.Deadline)
			if !r.Deadline.After(s.now) {
				t.When = "as soon as Drydock looks: the node had until " + stamp(r.Deadline) + " to be well"
			}
		}
	}
}

// alerts are those that the Node carries, and those about it that Alertmanager has beside them.
func (s *sight) alerts() (out []toldAlert) {
	known := map[string]bool{}
	for _, a := range remediations.AlertsOn(s.node.Annotations) {
		known[a.Fingerprint] = true
		state := a.Status + ", as the Node says"
		t := toldAlert{Name: a.Name, Fingerprint: a.Fingerprint, StartsAt: a.StartsAt, Policy: a.Policy}
		if s.asked {
			state = s.said(a.Fingerprint)
			if labels := s.labels(a.Fingerprint); labels != nil {
				t.NearMisses = s.config.Core.NearMisses(labels, s.state.Fleet.Node)
			}
		}
		t.State = state
		out = append(out, t)
	}
	if !s.asked {
		return out
	}
	for _, r := range s.state.Word.Replicas {
		for fingerprint, a := range r.Alerts {
			if known[fingerprint] || !s.names(a.Labels) {
				continue
			}
			known[fingerprint] = true
			t := toldAlert{Name: a.Labels["alertname"], Fingerprint: fingerprint, StartsAt: a.StartsAt, State: s.said(fingerprint)}
			route, why := s.config.Core.Route(a.Labels, s.state.Fleet.Node)
			if why == remediations.MisrouteNone {
				t.Policy = route.Policy.Name
			}
			t.NearMisses = s.config.Core.NearMisses(a.Labels, s.state.Fleet.Node)
			out = append(out, t)
		}
	}
	slices.SortStableFunc(out, func(a, b toldAlert) int { return strings.Compare(a.Name+a.Fingerprint, b.Name+b.Fingerprint) })
	return out
}

// said is what the Alertmanagers say of the alert.
func (s *sight) said(fingerprint string) string {
	own := s.state.OwnSilence()
	v := s.state.Word.About(fingerprint, s.config.Core, own)
	if v.Reason == "" {
		return "firing"
	}
	return string(v.Reason) + ": " + v.Message
}

func (s *sight) labels(fingerprint string) map[string]string {
	for _, r := range s.state.Word.Replicas {
		if a, ok := r.Alerts[fingerprint]; ok {
			return a.Labels
		}
	}
	return nil
}
