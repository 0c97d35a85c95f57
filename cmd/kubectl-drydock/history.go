package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"drydock.dev/drydock/internal/inspect"
	"drydock.dev/drydock/remediations"
)

// history is newest first.
type history struct {
	APIVersion string               `json:"apiVersion"`
	Kind       string               `json:"kind"`
	Cluster    inspect.Cluster      `json:"cluster,omitzero"`
	Node       string               `json:"node"`
	Repairs    []remediations.Entry `json:"repairs"`
}

func (p *plugin) newHistoryCommand() *cobra.Command {
	var o output
	cmd := &cobra.Command{
		Use:   "history NODE [-o wide|json|yaml]",
		Short: "Show how the last repairs of a node ended",
		Long: "History shows the last ten repairs of each kind that ended on a node, the newest first. -o wide adds the times,\n" +
			"the cause, the repair whose cure did not last (AFTER), and why each repair ended (WHY). If a policy only observed,\n" +
			"STEPS names what it would have done, and WHY says whether the node recovered without it.",
		Example: "  kubectl drydock history node-3 -o wide",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return err
			}
			c, err := p.connect()
			if err != nil {
				return err
			}
			n, err := c.Nodes().Get(cmd.Context(), args[0], metav1.GetOptions{})
			if err != nil {
				return inspect.Asking(err, "reading node "+args[0], args[0])
			}
			h := history{APIVersion: inspect.APIVersion, Kind: "History", Cluster: c.Cluster, Node: n.Name, Repairs: remediations.DecodeHistory(n.Annotations[remediations.HistoryKey])}
			if value := n.Annotations[remediations.HistoryKey]; h.Repairs == nil && value != "" {
				return fmt.Errorf("the history of %s cannot be read: the value of its annotation %s has a format that Drydock does not write", n.Name, remediations.HistoryKey)
			}
			if h.Repairs == nil {
				h.Repairs = []remediations.Entry{} // JSON gets an empty list, not null
			}
			if o.to != nil {
				return o.print(h, p.Out)
			}
			p.printHistory(h, o.wide())
			return nil
		},
	}
	o.bind(cmd)
	return cmd
}

func (p *plugin) printHistory(h history, wide bool) {
	if len(h.Repairs) == 0 {
		say(p.ErrOut, "%s", h.Cluster.Says("No repair of "+h.Node+" has ended yet."))
		return
	}
	now := p.now()
	header := []string{"REPAIR", "TARGET", "POLICY", "OUTCOME", "STEPS", "ENDED", "TOOK"}
	leaders := slices.ContainsFunc(h.Repairs, func(e remediations.Entry) bool { return e.Location != "" })
	if leaders {
		header = slices.Insert(header, ledColumn, "LEADER")
	}
	if wide {
		header = append(header, "BEGAN AT", "ENDED AT", "CAUSE", "AFTER", "WHY")
	}
	rows := [][]string{header}
	for _, e := range h.Repairs {
		target := e.Target
		switch {
		case e.Pod != "":
			target = e.Pod
		case e.Location != "":
			target = "leader of " + e.Location
		case target == "":
			target = "node"
		}
		row := cells(e.ID, target, e.Policy, string(e.Outcome), stepsOf(e), inspect.Age(now, e.Ended)+" ago", duration.HumanDuration(max(0, e.Ended.Sub(e.Began))))
		if leaders {
			row = slices.Insert(row, ledColumn, cells(ledIn(e))...)
		}
		if wide {
			row = append(row, cells(inspect.Stamp(e.Began), inspect.Stamp(e.Ended), endedCause(e), e.After, e.Why)...)
		}
		rows = append(rows, row)
	}
	printLines(p.Out, h.Cluster.Lines())
	(&table{out: p.Out}).print(rows...)
}

func stepsOf(e remediations.Entry) string {
	if e.Would != nil {
		return "would " + e.Would.Step.String()
	}
	return strings.Join(e.Steps.Texts(), ",")
}

// The table has the column LEADER only if one of its repairs is of a mesh leader.
const ledColumn = 5

// ledIn names the mesh leaders, oldest first, and says whether Drydock restored the previous one.
func ledIn(e remediations.Entry) string {
	text := inspect.Led(e.Moves)
	if e.PutBack {
		text += ", put back"
	}
	return text
}

func endedCause(e remediations.Entry) string {
	switch {
	case e.Request != "":
		return "request/" + e.Request
	case e.Cause != "":
		return "alert/" + e.Cause
	}
	return ""
}
