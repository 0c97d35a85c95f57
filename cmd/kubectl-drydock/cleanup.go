package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/internal/actions"
	"drydock.dev/drydock/internal/inspect"
)

// leaseName is the Lease of the leader election of Drydock's replicas.
const leaseName = "drydock"

func (p *plugin) newCleanupCommand() *cobra.Command {
	var yes, force bool
	cmd := &cobra.Command{
		Use:   "cleanup [--yes] [--force]",
		Short: "Remove what Drydock wrote on all nodes, after you uninstalled it",
		Long: "Cleanup removes Drydock's annotations, label, taint, conditions and cordon from all nodes, and requests that got no answer.\n" +
			"It keeps what people wrote to keep Drydock away, and names the objects that `helm uninstall` leaves behind.\n" +
			"Without --yes it prints what it would remove, and writes nothing.",
		Example: "  helm uninstall drydock -n drydock\n  kubectl drydock cleanup\n  kubectl drydock cleanup --yes",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := p.connect()
			if err != nil {
				return err
			}
			return p.cleanup(cmd.Context(), c, yes, force)
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "remove it; without --yes, cleanup only prints what it would remove")
	cmd.Flags().BoolVar(&force, "force", false, "remove it also while Drydock runs or a repair is in flight")
	cmd.Flags().StringVar(&p.ledger, "ledger", inspect.LedgerName, "name of the ledger's ConfigMap")
	cmd.Flags().StringVar(&p.lease, "lease", leaseName, "name of the Lease that Drydock's replicas use to elect a leader")
	return cmd
}

func (p *plugin) cleanup(ctx context.Context, c inspect.Client, yes, force bool) error {
	l, err := p.reader(c).ReadLedger(ctx)
	if err != nil {
		return err
	}
	running, found, err := p.runs(ctx, c, l.Namespace)
	if err != nil {
		return err
	}
	var all []traces
	if err := p.reader(c).EachNode(ctx, metav1.ListOptions{}, func(n *corev1.Node) error {
		t, err := tracesOn(n)
		all = append(all, t)
		return err
	}); err != nil {
		return err
	}
	obstacles := obstaclesTo(all, running)
	if yes && !force && len(obstacles) > 0 {
		return fmt.Errorf("nothing was removed: %s. `kubectl drydock cleanup --yes --force` removes it all the same", strings.Join(obstacles, "; "))
	}
	printLines(p.Out, c.Cluster.Lines())
	var refused refusals
	removed := 0
	for _, t := range all {
		switch {
		case len(t.removed) == 0:
			continue
		case !yes:
			p.say("%s: would remove %s", t.node, strings.Join(t.removed, ", "))
		default:
			done, err := p.clean(ctx, c, t.node, force)
			if err != nil {
				refused = append(refused, inCluster{c.Cluster, err})
				continue
			}
			p.say("%s: removed %s", t.node, strings.Join(done, ", "))
		}
		removed++
	}
	if removed+len(refused) == 0 {
		p.say("No node has anything that Drydock wrote.")
	}
	for _, t := range all {
		for _, k := range t.kept {
			p.say("%s: keeps %s", t.node, k)
		}
	}
	lease := ""
	if found {
		lease = p.lease
	}
	for _, o := range leftovers(l, lease) {
		p.say("%s", o)
	}
	if !yes {
		for _, o := range obstacles {
			p.say("Not yet: %s.", o)
		}
		p.say("Nothing was written. `kubectl drydock cleanup --yes` removes it.")
	}
	if len(refused) > 0 {
		return refused
	}
	return nil
}

func obstaclesTo(all []traces, running string) (out []string) {
	if running != "" {
		out = append(out, running)
	}
	for _, t := range all {
		if t.busy != "" {
			out = append(out, t.busy)
		}
	}
	return out
}

// runs reads the Lease of the leader election. running is a sentence if Drydock runs or may run.
func (p *plugin) runs(ctx context.Context, c inspect.Client, namespace string) (running string, found bool, err error) {
	name := namespace + "/" + p.lease
	lease, err := c.Leases(namespace).Get(ctx, p.lease, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return "", false, nil
	case apierrors.IsForbidden(err):
		return fmt.Sprintf("Lease %s cannot be read, so Drydock may still run: %v", name, err), false, nil
	case err != nil:
		return "", false, inspect.Asking(err, "reading Lease "+name, "")
	}
	s := lease.Spec
	if s.HolderIdentity == nil || *s.HolderIdentity == "" || s.RenewTime == nil || s.LeaseDurationSeconds == nil {
		return "", true, nil
	}
	// c.Clock corrects the local time by the API server's. If the local clock were ahead, the Lease
	// of a running Drydock would seem expired.
	now, _ := c.Clock.Now(p.now())
	if now.After(s.RenewTime.Add(time.Duration(*s.LeaseDurationSeconds) * time.Second)) {
		return "", true, nil
	}
	return fmt.Sprintf("Drydock still runs and would write again: %s renewed Lease %s at %s; uninstall Drydock first, or wait %d s if you just did", *s.HolderIdentity, name, inspect.Stamp(s.RenewTime.Time), *s.LeaseDurationSeconds), true, nil
}

func leftovers(l inspect.Ledger, lease string) (out []string) {
	say := func(kind, name, what string) {
		out = append(out, fmt.Sprintf("%s %s/%s is left, %s. To remove it: kubectl delete %s %s -n %s", kind, l.Namespace, name, what, strings.ToLower(kind), name, l.Namespace))
	}
	switch {
	case l.Missing:
	case l.Whole == nil && l.Problem != "":
		out = append(out, fmt.Sprintf("ConfigMap %s/%s may be left: %s", l.Namespace, l.Name, l.Problem))
	default:
		say("ConfigMap", l.Name, "with the counts and limits of all repairs")
	}
	if lease != "" {
		say("Lease", lease, "which the replicas used to elect a leader")
	}
	return out
}

// clean reads the Node again. It removes nothing if the Node is now under repair, unless force is
// set.
func (p *plugin) clean(ctx context.Context, c inspect.Client, node string, force bool) (removed []string, err error) {
	doing := "cleaning " + node
	for range actions.Attempts {
		n, err := c.Nodes().Get(ctx, node, metav1.GetOptions{})
		if err != nil {
			return nil, inspect.Asking(err, doing, node)
		}
		t, err := tracesOn(n)
		if err != nil {
			return nil, err
		}
		if t.busy != "" && !force {
			return nil, fmt.Errorf("nothing was removed from %s: %s", node, t.busy)
		}
		// The conditions need a separate write, which comes first. If the second write fails, the other
		// traces are still on the Node, so a person can run cleanup again.
		if err = t.unannounce(ctx, c, n, p.writer(c).DryRun); err == nil {
			_, err = p.writer(c).Patch(ctx, node, t.patch(n))
		}
		switch {
		case apierrors.IsConflict(err):
		case err != nil && !p.writer(c).DryRun && !actions.Refused(err):
			return nil, fmt.Errorf("it is unknown whether everything was removed from %s: %s; run the command again", node, inspect.Sentence(inspect.Asking(err, doing, node)))
		default:
			return t.removed, inspect.Asking(err, doing, node)
		}
	}
	return nil, fmt.Errorf("nothing was removed from %s, because it changed during each of %d attempts; try again", node, actions.Attempts)
}
