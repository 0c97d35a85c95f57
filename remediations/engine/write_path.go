package engine

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
)

const (
	// maxUnwritten bounds the Nodes with failing writes that the ledger names.
	maxUnwritten = 64
	// maxUnwrittenText bounds the text about each of them.
	maxUnwrittenText = 300
)

// Writes describes whether the API server accepts Drydock's writes on Nodes.
type Writes struct {
	// Denied is why the API server refuses Drydock's own keys on all Nodes. It is empty if it
	// accepts them, or if that is unknown.
	Denied string
	// Limited has a sentence for each other write that is refused. These hold no repair, because
	// only some steps need them.
	Limited []string
	// Refused has the Nodes where the last write of an alert failed, by name.
	Refused map[string]Refusal
}

// Refusal is why a write fails, and since when.
type Refusal struct {
	Since time.Time
	Why   string
}

func (e *Engine) readWrites() {
	if e.Writes == nil {
		return
	}
	before := e.writes.Denied
	e.writes = e.Writes()
	switch {
	case e.writes.Denied != "" && before == "":
		e.Events.Event("", Event{Warning: true, Reason: "WritesDenied", Action: "Held", Note: e.writes.Denied + ". No repair begins until the API server accepts these writes."})
	case e.writes.Denied == "" && before != "":
		e.Events.Event("", Event{Reason: "WritesTaken", Action: "Taken", Note: "the API server accepts Drydock's writes on Nodes again"})
	}
}

func (p *pass) unwritten(now time.Time) map[string]string {
	out := map[string]string{}
	if on := p.unshown.refused; on.node != "" {
		out[on.node] = fmt.Sprintf("alert %s cannot be written on the Node since %s", on.alert, instant(on.since))
	}
	for node, r := range p.writes.Refused {
		if lifecycle.Lost(r.Since, now) && p.roster.Node(node) != nil {
			out[node] = fmt.Sprintf("alerts cannot be written on the Node since %s: %s", instant(r.Since), r.Why)
		}
	}
	for node, m := range p.memory {
		if m.writes.lasting(now) {
			out[node] = fmt.Sprintf("Drydock's record cannot be written on the Node since %s: %v", instant(m.writes.since), m.writes.err)
		}
	}
	for i, node := range slices.Sorted(maps.Keys(out)) {
		if out[node] = text.Line(out[node], maxUnwrittenText); i >= maxUnwritten {
			delete(out, node)
		}
	}
	return out
}

func instant(t time.Time) string { return remediations.Instant(t).UTC().Format(time.RFC3339) }
