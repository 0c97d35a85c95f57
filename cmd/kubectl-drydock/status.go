package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/duration"

	"drydock.dev/drydock/internal/cli"
	"drydock.dev/drydock/remediations"
)

func (p *plugin) newStatusCommand() *cobra.Command {
	var o output
	var of scope
	var watch bool
	cmd := &cobra.Command{
		Use:   "status [NODE... | -l SELECTOR] [--all] [-w] [-o wide|json|yaml]",
		Short: "Show what Drydock is doing, and what holds it",
		Long: "Status shows the mode, the breakers, what Drydock waits for and which limits are in use, as its ledger says,\n" +
			"and then every repair on a node, and every node that waits for one. With -o wide also until when, the cause, and the\n" +
			"hold's own words. Nodes that nothing concerns have a row with --all, and where they are named.",
		Example: "  kubectl drydock status -o wide\n  kubectl drydock status node-3\n  kubectl drydock status -w",
		RunE: func(cmd *cobra.Command, names []string) error {
			if of.names = names; len(names) > 0 && of.selector != "" {
				return cli.Usagef("nodes and -l were both given; give one of them")
			}
			if _, err := labels.Parse(of.selector); err != nil {
				return cli.Usagef("--selector %q is not a label selector: %w", of.selector, err)
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
	selects(cmd, &of.selector)
	cmd.Flags().BoolVar(&of.well, "all", false, "also the nodes that nothing concerns")
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "print again what changes, until interrupted")
	cmd.Flags().StringVar(&p.ledger, "ledger", ledgerName, "name of the ledger's ConfigMap")
	cmd.Flags().StringVar(&p.lease, "lease", leaseName, "name of the Lease by which Drydock's replicas elect a leader")
	return cmd
}

func (p *plugin) status(ctx context.Context, c client, of scope, o *output) error {
	s, err := p.read(ctx, c, of)
	if err != nil {
		return err
	}
	if o.to != nil {
		return o.print(s, p.Out)
	}
	now := p.now()
	printLines(p.Out, s.lines(now))
	rows := [][]string{statusHeader(o.wide())}
	for _, r := range s.Repairs {
		rows = append(rows, r.row(now, o.wide()))
	}
	printRepairs(&table{out: p.Out}, rows)
	return nil
}

func printRepairs(t *table, rows [][]string) {
	fmt.Fprintln(t.out)
	if len(rows) == 1 {
		fmt.Fprintln(t.out, "No node is under repair, and none waits for one.")
		return
	}
	t.print(rows...)
}

func printLines(out io.Writer, lines []line) {
	said := ""
	for _, l := range lines {
		label := l.label + ":"
		if l.label == said {
			label = "" // the next of the same kind
		}
		said = l.label
		fmt.Fprintf(out, "%-10s%s\n", label, plain(l.text))
	}
}

func statusHeader(wide bool) []string {
	row := []string{"NODE", "REPAIR", "POLICY", "PHASE", "STEP", "AGE", "HOLD"}
	if wide {
		row = append(row, "UNTIL", "CAUSE", "MESSAGE")
	}
	return row
}

// row shows a repair as it is now.
func (r repair) row(now time.Time, wide bool) []string {
	node := r.Node
	switch {
	case r.Record != nil && r.Record.Pod != nil:
		node += " (" + r.Record.Pod.String() + ")"
	case r.Record != nil && r.Record.Location != "":
		node += " (leader of " + r.Record.Location + ")"
	case r.Target != "node":
		node += "/" + r.Target
	}
	if r.Record == nil && r.Problem == "" {
		return r.waitingRow(now, wide)
	}
	if r.Record == nil {
		row := cells(node, "", "", "Malformed", "", "", string(remediations.RecordMalformed))
		if wide {
			row = append(row, cells("", "", r.Problem)...)
		}
		return row
	}
	rec := r.Record
	var hold, until string
	message := rec.Note
	if message == "" && len(rec.Moves) > 0 {
		message = "leadership moved from " + led(rec.Moves)
	}
	if rec.Phase.InFlight() {
		until = yetToCome(&rec.Deadline, now)
	}
	if r.Hold != nil {
		hold, message, until = string(r.Hold.Reason), r.Hold.Message, yetToCome(r.Hold.Until, now)
	}
	if rec.Phase == remediations.Exhausted {
		message = fmt.Sprintf("a person must look%s; when the node is mended, `kubectl drydock reset %s`", leftWith(rec), r.Node)
	}
	row := cells(node, rec.ID, rec.Policy, string(rec.Phase), rec.Step.String(), age(now, rec.Began), hold)
	if wide {
		row = append(row, cells(until, cause(rec.Cause), message)...)
	}
	return row
}

// led says who had a location's leadership, one after the other.
func led(moves []remediations.Move) string {
	var out []string
	for i, m := range moves {
		if i == 0 {
			out = append(out, m.From)
		}
		out = append(out, m.To)
	}
	return strings.Join(out, " to ")
}

// leftWith says who has the leadership that an exhausted repair moved.
func leftWith(r *remediations.Record) string {
	switch {
	case len(r.Moves) == 0:
		return ""
	case len(r.Undo) == 0:
		return "; the leadership moved from " + led(r.Moves) + " and was put back to " + r.Moves[0].From
	}
	return "; the leadership moved from " + led(r.Moves) + " and is left there"
}

func cause(c remediations.Cause) string {
	if c.Alert != "" {
		return "alert/" + c.Alert
	}
	return "request/" + c.Request
}

// age is how long ago it was; nothing where the time is not known. A clock that runs behind gives 0 s, not a nonsense.
func age(now, then time.Time) string {
	if then.IsZero() {
		return ""
	}
	return duration.HumanDuration(max(0, now.Sub(then)))
}
