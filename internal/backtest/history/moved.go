package history

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
)

// If more nodes changed, the query is about all nodes.
const mostMoved = 500

// moved sends one query per metric over the whole interval, [from, last] in ms, because one query
// per step would take many times as long. by is the matcher for the nodes that may have changed, or
// "" for all nodes.
//
// A series existed for the whole interval if it has as many samples as most series of
// kube_node_info from the same kube-state-metrics.
func (f *fleet) moved(ctx context.Context, p *Past, shown []series, from, last int64) (by string, none bool, err error) {
	if f.options.everyNode || !f.steady(shown, from, last) {
		return "", false, nil
	}
	step := f.options.Step.Milliseconds()
	window := fmt.Sprintf("[%dms]", last-from+step+f.options.Lookback.Milliseconds())
	usual := f.selector(metricInfo)
	var mu sync.Mutex
	names := map[string]bool{}
	work, within := errgroup.WithContext(ctx)
	work.SetLimit(together)
	for _, w := range f.watched() {
		q := question{name: "nodes that changed by " + w.name, splits: true, text: func(by string) string {
			counts := func(of asks) string { return "count_over_time(" + of(by, window) + ")" }
			other := counts(w.whole) + " != on (job,instance) group_left quantile by (job,instance) (0.5, " + counts(usual) + ")"
			if w.changes != nil {
				other += " or changes(" + w.changes(by, window) + ") > 0"
			}
			return "group by (node) (" + other + ")"
		}}
		work.Go(func() error {
			found, err := p.ask(within, q, last, last, step)
			mu.Lock()
			defer mu.Unlock()
			for _, s := range found {
				names[string(s.Labels["node"])] = true
			}
			return err
		})
	}
	if err := work.Wait(); err != nil {
		return "", false, err
	}
	if len(names) > mostMoved {
		return "", false, nil
	}
	return fmt.Sprintf(",node=~%q", either(slices.Sorted(maps.Keys(names)))), len(names) == 0, nil
}

// The counts of samples are comparable only if the same instances of kube-state-metrics showed
// Nodes during the whole period.
func (f *fleet) steady(shown []series, from, last int64) bool {
	if f.shows != nil && len(shown) != len(f.shows) {
		return false
	}
	return len(shown) > 0 && !slices.ContainsFunc(shown, func(s series) bool {
		return len(s.Runs) != 1 || s.Runs[0].From > from || s.Runs[0].Until < last || f.shows != nil && !f.shows[s.Labels.String()]
	})
}

// The facts here have whole for series that appear and disappear, and changes for series whose
// value changes. If a condition changes its status, two of its three series change.
func (f *fleet) watched() []fact {
	condition := fmt.Sprintf("condition=~%q", either(append(sortedKeys(f.options.NodeConditions), "Ready")))
	created, cordoned := f.selector(metricCreated), f.selector(metricUnschedulable)
	out := []fact{
		{name: metricInfo, whole: f.selector(metricInfo)},
		{name: metricCreated, whole: created, changes: created},
		{name: metricUnschedulable, whole: cordoned, changes: cordoned},
		{name: metricDeletion, whole: f.selector(metricDeletion)},
		{name: metricLabels, whole: f.selector(metricLabels)},
		{name: metricRole, whole: f.selector(metricRole)},
		{name: metricCondition, whole: f.selector(metricCondition, condition, `status="true"`), changes: f.selector(metricCondition, condition, `status!="false"`)},
	}
	if len(f.options.NodeTaints) > 0 {
		out = append(out, fact{name: metricTaint, whole: f.selector(metricTaint, fmt.Sprintf("key=~%q", either(f.options.NodeTaints)))})
	}
	return out
}
