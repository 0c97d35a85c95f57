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

// nodePage is the answer of `kubectl drydock why`, with timelines, Events and actions.
type nodePage struct {
	inspect.Why
	Headline  string             `json:"headline"`
	Tile      tile               `json:"tile"`
	Timelines []inspect.Timeline `json:"timelines"`
	Silences  []inspect.Silence  `json:"silences"`
	Events    []event            `json:"events"`
	Raw       []raw              `json:"raw"`
	Words     []word             `json:"words"`
	// ReadOnly reports that the page has no actions.
	ReadOnly bool      `json:"readOnly,omitempty"`
	Now      time.Time `json:"now"`

	addresses []string
	number    uint64
}

func (p *nodePage) knownAt() uint64 { return p.number }

// Repair returns the ID of the repair of the node itself, or "" if the Node has none on record.
func (p *nodePage) Repair() string {
	for _, r := range p.Repairs {
		if r.Target == "node" && r.Record != nil {
			return r.Record.ID
		}
	}
	return ""
}

// Exhausted returns the ID of the node's own exhausted repair, or "" if there is none.
func (p *nodePage) Exhausted() string {
	for _, r := range p.Repairs {
		if r.Target == "node" && r.Record != nil && r.Record.Phase == remediations.PhaseExhausted {
			return r.Record.ID
		}
	}
	return ""
}

type denial struct{ Names, Why string }

// Denials returns the rights that the user lacks, each with the actions that need it.
func (p *nodePage) Denials() (out []denial) {
	for _, w := range p.Words {
		if w.Denied == "" {
			continue
		}
		if i := slices.IndexFunc(out, func(d denial) bool { return d.Why == w.Denied }); i >= 0 {
			out[i].Names += ", " + w.Name
		} else {
			out = append(out, denial{w.Name, w.Denied})
		}
	}
	return out
}

// RefusedWords returns the actions that make no sense for the node in its state.
func (p *nodePage) RefusedWords() (out []word) {
	for _, w := range p.Words {
		if w.Denied == "" && w.Refused != "" {
			out = append(out, w)
		}
	}
	return out
}

type event struct {
	At      time.Time `json:"at"`
	Type    string    `json:"type"`
	Reason  string    `json:"reason"`
	Message string    `json:"message"`
	From    string    `json:"from,omitempty"`
	Count   int32     `json:"count,omitempty"`
}

type raw struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

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
		u.problem(w, r, http.StatusNotFound, "No such node", "This is not a valid name of a node.")
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

func (u *UI) nodePage(ctx context.Context, name string) (*nodePage, error) {
	s, err := u.Reader.Observe(ctx, name, u.Sources)
	if err != nil {
		return nil, err //nolint:wrapcheck // the error is already a sentence about the node
	}
	p := &nodePage{
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

const mostEvents = 100

// eventsOf is newest first. Kubernetes keeps Events about Nodes in the namespace default.
func (u *UI) eventsOf(ctx context.Context, name string) ([]event, error) {
	out := []event{}
	of := fields.Set{"involvedObject.kind": "Node", "involvedObject.name": name}.AsSelector().String()
	list, err := u.Reader.Events(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{FieldSelector: of, Limit: 500})
	if err != nil {
		return out, err //nolint:wrapcheck // the caller adds what was read
	}
	for i := range list.Items {
		e := &list.Items[i]
		if e.InvolvedObject.Kind != "Node" || e.InvolvedObject.Name != name {
			continue // some servers ignore field selectors
		}
		from := e.Source.Component
		if from == "" {
			from = e.ReportingController
		}
		one := event{At: happened(e), Type: e.Type, Reason: e.Reason, Message: e.Message, From: from, Count: max(e.Count, seriesCount(e))}
		out = append(out, one)
	}
	slices.SortStableFunc(out, func(a, b event) int { return b.At.Compare(a.At) })
	return out[:min(len(out), mostEvents)], nil
}

func seriesCount(e *corev1.Event) int32 {
	if e.Series == nil {
		return 0
	}
	return e.Series.Count
}

// happened reads two fields: each of the two Event APIs has this time in its own.
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

func rawOf(n *corev1.Node) []raw {
	out := []raw{}
	for key, value := range n.Annotations {
		if remediations.Owned(key) || strings.HasPrefix(key, "drydock.dev/") {
			out = append(out, raw{key, value})
		}
	}
	slices.SortFunc(out, func(a, b raw) int { return strings.Compare(a.Key, b.Key) })
	return out
}

// rung is one guard: a check that may hold a repair's next step.
type rung struct {
	lifecycle.GuardAnswer
	// First is true for the first guard that holds the step. Drydock reports its reason.
	First bool
}

// Mark returns one character that shows the guard's answer beside its text.
func (r rung) Mark() string {
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

type ladder struct {
	// Headline is empty if the top of the page already has it.
	Headline string
	inspect.Answer
}

// Ladders begins with the target of the headline.
func (p *nodePage) Ladders() (out []ladder) {
	if len(p.Guards) > 0 {
		out = append(out, ladder{Answer: p.Answer})
	}
	for _, t := range p.Others() {
		out = append(out, ladder{t.Headline(p.Now), t.Answer})
	}
	return out
}

// Rungs returns the guards that apply to the step, in Drydock's order.
func (l ladder) Rungs() (out []rung) {
	first := lifecycle.FirstHold(l.Guards)
	for i := range l.Guards {
		g := &l.Guards[i]
		if g.Standing != lifecycle.GuardOtherKind && g.Standing != lifecycle.GuardOtherStep {
			out = append(out, rung{*g, g == first})
		}
	}
	return out
}

// Unbound returns the reasons of the guards that do not apply, without duplicates.
func (l ladder) Unbound() string {
	var names []string
	for _, g := range l.Guards {
		bound := slices.ContainsFunc(l.Rungs(), func(r rung) bool { return r.Reason == g.Reason })
		if !bound && !slices.Contains(names, string(g.Reason)) {
			names = append(names, string(g.Reason))
		}
	}
	return strings.Join(names, ", ")
}

// AlertLink returns the address of the alert in its Alertmanager, or "" if that address is unknown.
func (p *nodePage) AlertLink(a inspect.Alert) string {
	for _, address := range p.addresses {
		if base := pageOf(address); base != "" {
			return base + "/#/alerts?filter=" + url.QueryEscape(`{alertname=`+quote(a.Name)+`}`)
		}
	}
	return ""
}

// SilenceLink returns the address of the silence in the Alertmanager that has it, or "".
func (p *nodePage) SilenceLink(s inspect.Silence) string {
	if base := pageOf(s.URL); base != "" {
		return base + "/#/silences/" + url.PathEscape(s.ID)
	}
	return ""
}

func quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s) + `"`
}

// pageOf leaves out user and password. It returns "" unless the address is http or https.
func pageOf(address string) string {
	at, err := url.Parse(address)
	if err != nil || at.Host == "" || (at.Scheme != "http" && at.Scheme != "https") {
		return ""
	}
	return (&url.URL{Scheme: at.Scheme, Host: at.Host, Path: strings.TrimRight(at.Path, "/")}).String()
}
