package history

import (
	"maps"
	"slices"
	"time"
)

// The earliest changes of both lists become one Moment. At least one list must not be empty. The
// second result reports that a gap in the data ended then.
func take(nodes *[]nodeChange, alerts *[]alertChange) (Moment, bool) {
	var at int64
	switch {
	case len(*nodes) == 0:
		at = (*alerts)[0].at
	case len(*alerts) == 0:
		at = (*nodes)[0].at
	default:
		at = min((*nodes)[0].at, (*alerts)[0].at)
	}
	m, ended := Moment{At: time.UnixMilli(at).UTC()}, false
	if len(*nodes) > 0 && (*nodes)[0].at == at {
		change := (*nodes)[0]
		*nodes = (*nodes)[1:]
		m.Nodes, m.Gone, ended = change.nodes, change.gone, change.ended
		if change.began {
			m.Gap = &Gap{Why: whyGap}
		}
	}
	for len(*alerts) > 0 && (*alerts)[0].at == at {
		if c := (*alerts)[0]; c.silence {
			m.Silences = append(m.Silences, Silence{Node: string(c.Labels["node"]), Ended: !c.EndsAt.IsZero()})
		} else {
			m.Alerts = append(m.Alerts, c.Alert)
		}
		*alerts = (*alerts)[1:]
	}
	slices.SortStableFunc(m.Alerts, Alert.compare)
	return m, ended
}

func (p *Past) know(m Moment) {
	for _, node := range m.Nodes {
		p.nodes[node.Name] = node
	}
	for _, name := range m.Gone {
		delete(p.nodes, name)
	}
	for _, s := range m.Silences {
		if p.silenced[s.Node] = true; s.Ended {
			delete(p.silenced, s.Node)
		}
	}
	for _, alert := range m.Alerts {
		if alert.EndsAt.IsZero() {
			p.alerts[alert.Labels.String()] = alert
		} else {
			delete(p.alerts, alert.Labels.String())
		}
	}
}

func (p *Past) all(at time.Time) Moment {
	m := Moment{At: at}
	for _, name := range sortedKeys(p.nodes) {
		m.Nodes = append(m.Nodes, p.nodes[name])
	}
	m.Alerts = slices.SortedFunc(maps.Values(p.alerts), Alert.compare)
	for _, name := range sortedKeys(p.silenced) {
		m.Silences = append(m.Silences, Silence{Node: name})
	}
	return m
}

// During a gap, the changes are collected. ended reports that the gap ends at this moment.
func (p *Past) emit(m Moment, ended bool, yield func(Moment) error) error {
	if p.gap == nil && m.Gap == nil {
		p.know(m)
		return yield(m)
	}
	if p.gap == nil {
		p.gap, p.before = &Moment{}, Moment{At: m.At}
	}
	p.gap.Alerts = append(p.gap.Alerts, m.Alerts...)
	p.gap.Silences = append(p.gap.Silences, m.Silences...)
	p.gap.Nodes = append(p.gap.Nodes, m.Nodes...)
	p.gap.Gone = append(p.gap.Gone, m.Gone...)
	if !ended {
		return nil
	}
	if err := yield(p.gapUntil(m.At)); err != nil {
		return err
	}
	held := *p.gap
	p.gap = nil
	held.At = m.At
	held.Alerts = p.changed(held.Alerts)
	p.know(held)
	return yield(held)
}

func (p *Past) gapUntil(until time.Time) Moment {
	m := p.before
	m.Gap = &Gap{Until: until, Why: whyGap}
	return m
}

// An alert that began and ended within the gap is not in the result.
func (p *Past) changed(alerts []Alert) []Alert {
	last := map[string]Alert{}
	for _, alert := range alerts {
		last[alert.Labels.String()] = alert
	}
	var out []Alert
	for _, key := range sortedKeys(last) {
		before, fired := p.alerts[key]
		if alert := last[key]; fired && (!before.StartsAt.Equal(alert.StartsAt) || !before.EndsAt.Equal(alert.EndsAt)) || !fired && alert.EndsAt.IsZero() {
			out = append(out, alert)
		}
	}
	return out
}
