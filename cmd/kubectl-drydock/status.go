package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"

	"drydock.dev/drydock/internal/cli"
	"drydock.dev/drydock/internal/inspect"
	"drydock.dev/drydock/remediations"
)

func (p *plugin) newStatusCommand() *cobra.Command {
	var o output
	var of inspect.Scope
	var watch bool
	cmd := &cobra.Command{
		Use:   "status [NODE... | -l SELECTOR] [--all] [-w] [-o wide|json|yaml]",
		Short: "Show what Drydock does, and what holds it",
		Long: "Status shows each repair on a node, and each node that waits for a repair. -o wide adds when a hold ends,\n" +
			"the repair's cause, and a message that explains the row. A node without a repair or an alert has a row if you name it, or with --all.\n" +
			"Then it shows the mode, the breakers, what Drydock waits for, and the limits in use, as the ledger has them.\n" +
			"With -w the table is last, and each change is a new row.",
		Example: "  kubectl drydock status -o wide\n  kubectl drydock status node-3\n  kubectl drydock status -w",
		RunE: func(cmd *cobra.Command, names []string) error {
			if of.Names = names; len(names) > 0 && of.Selector != "" {
				return cli.Usagef("nodes and -l were both given; give one of them")
			}
			if _, err := labels.Parse(of.Selector); err != nil {
				return cli.Usagef("--selector %q is not a label selector: %w", of.Selector, err)
			}
			if err := o.check(); err != nil {
				return err
			}
			c, err := p.connect()
			if err != nil {
				return err
			}
			if watch {
				return p.follow(cmd.Context(), c, of, &o)
			}
			return p.status(cmd.Context(), c, of, &o)
		},
	}
	o.bind(cmd)
	selects(cmd, &of.Selector)
	cmd.Flags().BoolVar(&of.Well, "all", false, "also the nodes without a repair or an alert")
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "print each change, until you interrupt the command")
	cmd.Flags().StringVar(&p.ledger, "ledger", inspect.LedgerName, "name of the ledger's ConfigMap")
	cmd.Flags().StringVar(&p.lease, "lease", leaseName, "name of the Lease that Drydock's replicas use to elect a leader")
	return cmd
}

func (p *plugin) status(ctx context.Context, c inspect.Client, of inspect.Scope, o *output) error {
	s, err := p.reader(c).Status(ctx, of)
	if err != nil {
		return err
	}
	if o.to != nil {
		return o.print(s, p.Out)
	}
	now := p.now()
	first := s.FirstLines()
	if printLines(p.Out, first); len(first) > 0 {
		fmt.Fprintln(p.Out)
	}
	rows := [][]string{statusHeader(o.wide())}
	for _, r := range s.Repairs {
		rows = append(rows, row(r, now, o.wide()))
	}
	printRepairs(&table{out: p.Out}, rows)
	fmt.Fprintln(p.Out)
	printLines(p.Out, s.Lines(now)[len(first):])
	return nil
}

func printRepairs(t *table, rows [][]string) {
	if len(rows) == 1 {
		fmt.Fprintln(t.out, "No node is under repair, and no node waits for a repair.")
		return
	}
	t.print(rows...)
}

func printLines(out io.Writer, lines []inspect.Line) {
	said, width := "", 10
	for _, l := range lines {
		width = max(width, len(l.Label)+2)
	}
	for _, l := range lines {
		label := l.Label + ":"
		if l.Label == said {
			label = "" // the line before has the same label
		}
		said = l.Label
		fmt.Fprintf(out, "%-*s%s\n", width, label, plain(l.Text))
	}
}

func statusHeader(wide bool) []string {
	row := []string{"NODE", "REPAIR", "POLICY", "PHASE", "STEP", "AGE", "HOLD"}
	if wide {
		row = append(row, "UNTIL", "CAUSE", "MESSAGE")
	}
	return row
}

func row(r inspect.Repair, now time.Time, wide bool) []string {
	node := r.Name()
	if r.Record == nil && r.Problem == "" {
		return waitingRow(r, now, wide)
	}
	if r.Record == nil {
		row := cells(node, "", "", "Malformed", "", "", string(remediations.ReasonRecordMalformed))
		if wide {
			row = append(row, cells("", "", r.Says())...)
		}
		return row
	}
	rec := r.Record
	var hold, until string
	if rec.Phase.InFlight() {
		until = inspect.YetToCome(&rec.Deadline, now)
	}
	if r.Hold != nil {
		hold, until = string(r.Hold.Reason), inspect.YetToCome(r.Hold.Until, now)
	}
	row := cells(node, rec.ID, rec.Policy, string(rec.Phase), rec.Step.String(), inspect.Age(now, rec.Began), hold)
	if wide {
		row = append(row, cells(until, inspect.CauseOf(rec.Cause), r.Says())...)
	}
	return row
}

func waitingRow(r inspect.Repair, now time.Time, wide bool) []string {
	var policy, phase, since, why, hold, until string
	switch {
	case r.Alert != nil:
		policy, phase, since, why = r.Alert.Policy, "Waiting", inspect.Age(now, r.Alert.ReceivedAt), "alert/"+r.Alert.Fingerprint
	case r.Ill != "":
		phase = "Unhealthy"
	}
	if r.Hold != nil {
		hold, until = string(r.Hold.Reason), inspect.YetToCome(r.Hold.Until, now)
	}
	row := cells(r.Node, "", policy, phase, "", since, hold)
	if wide {
		row = append(row, cells(until, why, r.Says())...)
	}
	return row
}
