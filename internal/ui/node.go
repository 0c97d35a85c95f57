package ui

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/validation"

	"drydock.dev/drydock/internal/inspect"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
)

// NodePage is the content of a node's page: the answer of `kubectl drydock why`, and more about the
// node.
type NodePage struct {
	inspect.Why
	// Headline is the answer in one sentence.
	Headline  string             `json:"headline"`
	Tile      Tile               `json:"tile"`
	Timelines []inspect.Timeline `json:"timelines"`
	Silences  []inspect.Silence  `json:"silences"`
	Events    []Event            `json:"events"`
	Raw       []Raw              `json:"raw"`
	Words     []Word             `json:"words"`
	// ReadOnly: the page changes nothing.
	ReadOnly bool      `json:"readOnly,omitempty"`
	Now      time.Time `json:"now"`

	addresses []string
	number    uint64
}

func (p *NodePage) knownAt() uint64 { return p.number }

// Repair returns the id of the repair on the Node.
func (p *NodePage) Repair() string {
	for _, r := range p.Repairs {
		if r.Target == "node" && r.Record != nil {
			return r.Record.ID
		}
	}
	return ""
}

// Exhausted returns the id of the repair on the Node that ran out of steps.
func (p *NodePage) Exhausted() string {
	for _, r := range p.Repairs {
		if r.Target == "node" && r.Record != nil && r.Record.Phase == remediations.PhaseExhausted {
			return r.Record.ID
		}
	}
	return ""
}

// Denial is a right that the user lacks, with the actions that need it.
type Denial struct{ Names, Why string }

// Denials returns the actions that the user lacks the rights for, by reason.
func (p *NodePage) Denials() (out []Denial) {
	for _, w := range p.Words {
		if w.Denied == "" {
			continue
		}
		if i := slices.IndexFunc(out, func(d Denial) bool { return d.Why == w.Denied }); i >= 0 {
			out[i].Names += ", " + w.Name
		} else {
			out = append(out, Denial{w.Name, w.Denied})
		}
	}
	return out
}

// RefusedWords returns the actions that have no meaning for the node in its state.
func (p *NodePage) RefusedWords() (out []Word) {
	for _, w := range p.Words {
		if w.Denied == "" && w.Refused != "" {
			out = append(out, w)
		}
	}
	return out
}

// Event is an Event about the node.
type Event struct {
	At      time.Time `json:"at"`
	Type    string    `json:"type"`
	Reason  string    `json:"reason"`
	Message string    `json:"message"`
	From    string    `json:"from,omitempty"`
	Count   int32     `json:"count,omitempty"`
}

// Raw is an annotation of Drydock, or of a person for Drydock, as stored on the Node.
type Raw struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// nodeName returns the name in the path; false: it is not a valid node name. asJSON: the path asks
// for JSON.
func nodeName(r *http.Request) (name string, asJSON, ok bool) {
	name = r.PathValue("node")
	if !strings.HasSuffix(r.URL.Path, "/") {
		name, asJSON = strings.CutSuffix(name, ".json")
	}
	return name, asJSON, len(validation.IsDNS1123Subdomain(name)) == 0
}

func (u *UI) showNode(w http.ResponseWriter, r *http.Request) {
	name, _, ok := nodeName(r)
	if !ok {
		u.problem(w, r, http.StatusNotFound, "No such node", "No node can have this name.")
		return
	}
	number := u.fleet.now()
	page, err := u.nodePage(r.Context(), name)
	switch {
	case apierrors.IsNotFound(err):
		u.problem(w, r, http.StatusNotFound, "No such node", inspect.Sentence(err))
	case err != nil:
		u.problem(w, r, http.StatusBadGateway, name+" cannot be read", inspect.Sentence(err))
	default:
		page.number = number
		u.page(w, r, http.StatusOK, "node", name, page)
	}
}

func (u *UI) nodePage(ctx context.Context, name string) (*NodePage, error) {
	s, err := u.Reader.Observe(ctx, name, u.Sources)
	if err != nil {
		return nil, err //nolint:wrapcheck // it is a sentence about the node
	}
	p := &NodePage{
		Why: s.Why(), Tile: tileOf(s.Node, &s.Ledger, s.Now), Timelines: s.Timelines(), Silences: s.Silences(), Raw: rawOf(s.Node),
		ReadOnly: u.ReadOnly, Now: s.Now, addresses: u.Sources.Alertmanagers,
	}
	p.Headline = p.Why.Headline(s.Now)
	if p.Events, err = u.eventsOf(ctx, name); err != nil {
		p.Unseen = append(p.Unseen, "the Node's Events: "+inspect.Sentence(err))
	}
	verbs := s.Config == nil || s.Config.Webhook == nil || s.Config.Webhook.Rights
	p.Words = u.words(ctx, s.Node, verbs)
	return p, nil
}

// mostEvents bounds the Events that are shown for a Node.
const mostEvents = 100

// eventsOf returns the Node's Events, the newest first. Events about Nodes are in the namespace
// default.
func (u *UI) eventsOf(ctx context.Context, name string) ([]Event, error) {
	out := []Event{}
	of := fields.Set{"involvedObject.kind": "Node", "involvedObject.name": name}.AsSelector().String()
	list, err := u.Reader.Events(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{FieldSelector: of, Limit: 500})
	if err != nil {
		return out, err //nolint:wrapcheck // the caller says what it was for
	}
	for i := range list.Items {
		e := &list.Items[i]
		if e.InvolvedObject.Kind != "Node" || e.InvolvedObject.Name != name {
			continue // for servers without field selectors
		}
		from := e.Source.Component
		if from == "" {
			from = e.ReportingController
		}
		one := Event{At: happened(e), Type: e.Type, Reason: e.Reason, Message: e.Message, From: from, Count: max(e.Count, seriesCount(e))}
		out = append(out, one)
	}
	slices.SortStableFunc(out, func(a, b Event) int { return b.At.Compare(a.At) })
	return out[:min(len(out), mostEvents)], nil
}

func seriesCount(e *corev1.Event) int32 {
	if e.Series == nil {
		return 0
	}
	return e.Series.Count
}

// happened returns when the Event was last seen: each way of recording Events has a field of its
// own for that.
func happened(e *corev1.Event) time.Time {
	at := e.LastTimestamp.Time
	for _, t := range []time.Time{e.EventTime.Time, e.FirstTimestamp.Time, e.CreationTimestamp.Time} {
		if at.IsZero() {
			at = t
		}
	}
	if e.Series != nil && e.Series.LastObservedTime.After(at) {
		at = e.Series.LastObservedTime.Time
	}
	return at.UTC()
}

// rawOf returns what Drydock and people wrote on the Node for each other.
func rawOf(n *corev1.Node) []Raw {
	out := []Raw{}
	for key, value := range n.Annotations {
		if remediations.Owned(key) || strings.HasPrefix(key, "drydock.dev/") {
			out = append(out, Raw{key, value})
		}
	}
	slices.SortFunc(out, func(a, b Raw) int { return strings.Compare(a.Key, b.Key) })
	return out
}

// Rung is one guard in the list of guards.
type Rung struct {
	lifecycle.GuardAnswer
	// First: the first guard that holds, which decides.
	First bool
}

// Mark returns one character for the answer, shown beside its text.
func (r Rung) Mark() string {
	switch r.Standing {
	case lifecycle.GuardPassed:
		return "✓"
	case lifecycle.GuardHolds:
		return "✖"
	case lifecycle.GuardNotSeen:
		return "?"
	case lifecycle.GuardOtherKind, lifecycle.GuardOtherStep:
	}
	return "·"
}

// Ladder is the answers of all guards about the considered step of a target.
type Ladder struct {
	// Headline is the answer for that target. Empty: it is at the top of the page.
	Headline string
	inspect.Answer
}

// Ladders returns the lists for the target of the headline, and for the others on the node.
func (p *NodePage) Ladders() (out []Ladder) {
	if len(p.Guards) > 0 {
		out = append(out, Ladder{Answer: p.Answer})
	}
	for _, t := range p.Others() {
		out = append(out, Ladder{t.Headline(p.Now), t.Answer})
	}
	return out
}

// Rungs returns the guards that apply to the step, in order.
func (l Ladder) Rungs() (out []Rung) {
	first := lifecycle.FirstHold(l.Guards)
	for i := range l.Guards {
		g := &l.Guards[i]
		if g.Standing != lifecycle.GuardOtherKind && g.Standing != lifecycle.GuardOtherStep {
			out = append(out, Rung{*g, g == first})
		}
	}
	return out
}

// Unbound returns the reasons whose guards do not apply to the step, each once.
func (l Ladder) Unbound() string {
	var names []string
	for _, g := range l.Guards {
		bound := slices.ContainsFunc(l.Rungs(), func(r Rung) bool { return r.Reason == g.Reason })
		if !bound && !slices.Contains(names, string(g.Reason)) {
			names = append(names, string(g.Reason))
		}
	}
	return strings.Join(names, ", ")
}

// AlertLink returns a link to the alert. Empty: the address of its Alertmanager is unknown.
func (p *NodePage) AlertLink(a inspect.Alert) string {
	for _, address := range p.addresses {
		if base := pageOf(address); base != "" {
			return base + "/#/alerts?filter=" + url.QueryEscape(`{alertname=`+quote(a.Name)+`}`)
		}
	}
	return ""
}

// SilenceLink returns a link to the silence, in the Alertmanager that has it.
func (p *NodePage) SilenceLink(s inspect.Silence) string {
	if base := pageOf(s.URL); base != "" {
		return base + "/#/silences/" + url.PathEscape(s.ID)
	}
	return ""
}

// quote quotes a value for Alertmanager's matchers.
func quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s) + `"`
}

// pageOf returns the address of an Alertmanager's own page. Only http and https may become a link,
// and never with a password.
func pageOf(address string) string {
	at, err := url.Parse(address)
	if err != nil || at.Host == "" || (at.Scheme != "http" && at.Scheme != "https") {
		return ""
	}
	return (&url.URL{Scheme: at.Scheme, Host: at.Host, Path: strings.TrimRight(at.Path, "/")}).String()
}
