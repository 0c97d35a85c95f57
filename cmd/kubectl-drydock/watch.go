package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"drydock.dev/drydock/internal/inspect"
	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
)

const (
	// settleFor is the wait between a watch event and the read of the status, so that one read shows
	// several related changes.
	settleFor = 200 * time.Millisecond
	// readAgain is the interval of reads without a watch event, for users who may list Nodes but not
	// watch them.
	readAgain  = 15 * time.Second
	watchAgain = time.Second
)

// watchWidths are the widths of likely values: the header is printed before any data arrive.
var watchWidths = []int{len("21:05:00Z"), 12, len("REPAIR"), 14, len("Verifying"), len("reboot:1"), len("AGE"), len("CordonedByOther"), len(time.RFC3339) - 5, len("alert/9f2c0e5b6d1a4c33")}

// follow reads the status after each watch event. The output never uses the event's content.
func (p *plugin) follow(ctx context.Context, c inspect.Client, of inspect.Scope, o *output) error {
	f := &follower{plugin: p, client: c, output: o, table: &table{out: p.Out, widths: slices.Clone(watchWidths)}}
	began := time.Now()
	s, err := p.reader(c).Status(ctx, of)
	took := time.Since(began)
	if err != nil {
		return err
	}
	if err := f.first(s); err != nil {
		return err
	}
	nudge := make(chan struct{}, 1)
	go f.listen(ctx, nudge, c.Nodes().Watch, metav1.ListOptions{LabelSelector: of.Selector})
	go f.listen(ctx, nudge, c.ConfigMaps(cmp.Or(s.Ledger.Namespace, inspect.LedgerNamespace)).Watch, metav1.ListOptions{FieldSelector: "metadata.name=" + p.ledger})
	tick := time.NewTicker(readAgain)
	defer tick.Stop()
	lost := false
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-nudge:
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(max(settleFor, took)): // so that a large fleet is not read all the time
			}
		case <-tick.C:
		}
		began := time.Now()
		s, err := p.reader(c).Status(ctx, of)
		took = time.Since(began)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && !lost:
			say(p.ErrOut, "%s the status cannot be read: %s; trying again", p.clock(), inspect.Sentence(err))
		case err == nil && lost:
			say(p.ErrOut, "%s the status can be read again", p.clock())
		}
		if lost = err != nil; lost {
			continue
		}
		if err := f.next(ctx, s); err != nil {
			return err
		}
	}
}

func (p *plugin) clock() string { return p.now().UTC().Format("15:04:05Z") }

type follower struct {
	*plugin
	client  inspect.Client
	output  *output
	table   *table
	lines   map[string]inspect.Line
	repairs map[string]inspect.Repair
}

func (f *follower) first(s *inspect.Status) error {
	f.remember(s)
	if f.output.to != nil {
		return f.output.print(s, f.Out)
	}
	now := f.now()
	printLines(f.Out, s.Lines(now))
	rows := [][]string{append([]string{"TIME"}, statusHeader(f.output.wide())...)}
	for _, r := range s.Repairs {
		rows = append(rows, append([]string{f.clock()}, row(r, now, f.output.wide())...))
	}
	fmt.Fprintln(f.Out)
	f.table.print(rows...)
	return nil
}

func (f *follower) remember(s *inspect.Status) {
	f.lines, f.repairs = map[string]inspect.Line{}, map[string]inspect.Repair{}
	for _, l := range s.Lines(f.now()) {
		f.lines[l.Key()] = l
	}
	for _, r := range s.Repairs {
		f.repairs[keyOf(r)] = r
	}
}

func targetOf(r inspect.Repair) string { return r.Node + "/" + r.Target }

func keyOf(r inspect.Repair) string {
	key := targetOf(r)
	if r.Record != nil {
		key += "/" + r.Record.ID
	}
	return key
}

func (f *follower) next(ctx context.Context, s *inspect.Status) error {
	lines, repairs := f.lines, f.repairs
	f.remember(s)
	var changed []string
	for _, l := range s.Lines(f.now()) {
		if before, ok := lines[l.Key()]; !ok || l.Changed(before) {
			changed = append(changed, f.clock()+"   "+l.Label+": "+plain(l.Text))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(lines)) {
		if _, ok := f.lines[key]; !ok {
			changed = append(changed, f.clock()+"   "+lines[key].Ended())
		}
	}
	targets := map[string]bool{}
	for _, r := range s.Repairs {
		targets[targetOf(r)] = true
	}
	var rows [][]string
	for _, key := range slices.Sorted(maps.Keys(repairs)) {
		if before := repairs[key]; before.Record == nil && targets[targetOf(before)] {
			continue // the waiting alert now has a repair
		}
		if _, ok := f.repairs[key]; !ok {
			rows = append(rows, append([]string{f.clock()}, f.ended(ctx, repairs[key])...))
		}
	}
	now, wide := f.now(), f.output.wide()
	for _, r := range s.Repairs {
		if before, ok := repairs[keyOf(r)]; !ok || !slices.Equal(row(r, time.Time{}, true), row(before, time.Time{}, true)) {
			rows = append(rows, append([]string{f.clock()}, row(r, now, wide)...))
		}
	}
	switch {
	case len(changed)+len(rows) == 0:
		return nil
	case f.output.to != nil:
		return f.output.print(s, f.Out)
	}
	for _, l := range changed {
		fmt.Fprintln(f.Out, l)
	}
	f.table.print(rows...)
	return nil
}

func (f *follower) ended(ctx context.Context, r inspect.Repair) []string {
	row := row(r, f.now(), f.output.wide())
	const phase, hold = 3, 6
	message := "the repair is no longer on the Node"
	row[phase], row[hold] = "Gone", "-"
	n, err := f.client.Nodes().Get(ctx, r.Node, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		message = "the Node itself is gone"
	case err == nil && r.Record != nil:
		for _, e := range remediations.DecodeHistory(n.Annotations[remediations.HistoryKey]) {
			if e.ID == r.Record.ID {
				row[phase], message = string(e.Outcome), e.Why
				break // the newest entry counts: an exhausted repair gets a second one when its node is healthy
			}
		}
	}
	if f.output.wide() {
		row[len(row)-3], row[len(row)-1] = "-", cells(message)[0]
	}
	return row
}

// listen sends to nudge at every event. If the user may not watch, it returns, and only the timer
// triggers reads.
func (f *follower) listen(ctx context.Context, nudge chan<- struct{}, begin func(context.Context, metav1.ListOptions) (watch.Interface, error), o metav1.ListOptions) {
	for ctx.Err() == nil {
		w, err := begin(ctx, o)
		if apierrors.IsForbidden(err) {
			say(f.ErrOut, "you may not watch these objects, so they are read every %s: %s", text.Duration(readAgain), inspect.Sentence(err))
			return
		}
		if err == nil {
			for range w.ResultChan() {
				select {
				case nudge <- struct{}{}:
				default: // a read is already pending
				}
			}
			w.Stop()
		}
		select {
		case <-ctx.Done():
		case <-time.After(watchAgain):
		}
	}
}
