package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/internal/actions"
	"drydock.dev/drydock/internal/inspect"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/announce"
	"drydock.dev/drydock/remediations/owners"
)

// leaseName is the Lease by which Drydock's replicas elect a leader.
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
	cmd.Flags().BoolVar(&yes, "yes", false, "remove it; without it, only print what would be removed")
	cmd.Flags().BoolVar(&force, "force", false, "remove it also while Drydock runs or a repair is in flight")
	cmd.Flags().StringVar(&p.ledger, "ledger", inspect.LedgerName, "name of the ledger's ConfigMap")
	cmd.Flags().StringVar(&p.lease, "lease", leaseName, "name of the Lease with which Drydock's replicas elect a leader")
	return cmd
}

// cleanup removes what Drydock wrote, or says what it would remove.
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
				refused = append(refused, err)
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

// obstaclesTo are the reasons not to remove anything yet.
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

// runs says that Drydock runs, by the Lease that its leader renews. found: the Lease exists.
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
	if p.now().After(s.RenewTime.Add(time.Duration(*s.LeaseDurationSeconds) * time.Second)) {
		return "", true, nil
	}
	return fmt.Sprintf("Drydock still runs and would write again: %s renewed Lease %s at %s; uninstall Drydock first, or wait %d s if you just did", *s.HolderIdentity, name, inspect.Stamp(s.RenewTime.Time), *s.LeaseDurationSeconds), true, nil
}

// leftovers name the objects that Drydock made and that no release of Helm's contains.
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
		say("Lease", lease, "with which the replicas elected a leader")
	}
	return out
}

// clean removes what is on the Node when it is read again; nothing where that is now under repair.
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
		// The conditions go first: they are found by themselves, and what is left of them after a failure is found again.
		if err = t.unannounce(ctx, c, n, p.writer(c).DryRun); err == nil {
			_, err = p.writer(c).Patch(ctx, node, t.patch(n))
		}
		if !apierrors.IsConflict(err) {
			return t.removed, inspect.Asking(err, doing, node)
		}
	}
	return nil, fmt.Errorf("%s changed each of the %d times that this was tried, and nothing was removed from it; try again", node, actions.Attempts)
}

// traces are what Drydock wrote on a Node.
type traces struct {
	node string
	// busy says that a repair is in flight.
	busy string
	// removed and kept name what is removed, and what is not, each for people.
	removed, kept []string

	annotations, labels []string
	uncordon            bool
	taints              []corev1.Taint // those that stay, where one is removed
	conditions          []corev1.NodeConditionType
}

// consumed are people's requests to Drydock, which the next install would answer.
var consumed = []string{remediations.RequestKey, remediations.ApproveKey, remediations.CancelKey, remediations.ResetKey, remediations.BreakGlassKey}

func tracesOn(n *corev1.Node) (traces, error) {
	t := traces{node: n.Name}
	for _, key := range slices.Sorted(maps.Keys(n.Annotations)) {
		switch {
		case remediations.Owned(key) || slices.Contains(consumed, key):
			t.annotations, t.removed = append(t.annotations, key), append(t.removed, described(key, n.Annotations[key]))
		case remediations.Relevant(key):
			t.kept = append(t.kept, fmt.Sprintf("the annotation %s=%q, which a person set; to remove it: kubectl annotate node %s %s-", key, n.Annotations[key], n.Name, key))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(n.Labels)) {
		switch {
		case remediations.Owned(key):
			t.labels, t.removed = append(t.labels, key), append(t.removed, "label "+key)
		case remediations.Relevant(key):
			t.kept = append(t.kept, fmt.Sprintf("the label %s=%s, which a person set; to remove it: kubectl label node %s %s-", key, n.Labels[key], n.Name, key))
		}
	}
	for _, c := range n.Status.Conditions {
		if announce.Own(c) {
			t.conditions, t.removed = append(t.conditions, c.Type), append(t.removed, "condition "+string(c.Type))
		}
	}
	j := remediations.ReadJournal(n)
	t.findRepair(n, j)
	return t, t.findUndo(n, j)
}

// described is an annotation as people know it.
func described(key, value string) string {
	if !strings.HasPrefix(key, remediations.RepairPrefix) {
		return key
	}
	r, err := remediations.DecodeRecordOf(key, value)
	if err != nil {
		return key + " (unreadable)"
	}
	return fmt.Sprintf("%s (repair %s by policy %s, %s)", key, r.ID, r.Policy, r.Phase)
}

// findRepair says which repair is in flight. A record that cannot be read may be of one.
func (t *traces) findRepair(n *corev1.Node, j remediations.Journal) {
	records := j.OtherRepairs
	if j.Record != nil && j.Record.Phase.InFlight() {
		records = append([]*remediations.Record{j.Record}, records...)
	}
	if len(records) > 0 {
		r := records[0]
		t.busy = fmt.Sprintf("repair %s by policy %s is in flight on %s (%s, %s); wait for its end, or end it with `kubectl drydock cancel %s` while Drydock runs", r.ID, r.Policy, n.Name, r.Phase, r.Step, n.Name)
		return
	}
	if phase := remediations.Phase(n.Labels[remediations.PhaseLabel]); j.Malformed != nil && phase.InFlight() {
		t.busy = fmt.Sprintf("the label %s=%s of %s says that a repair is in flight, and its record cannot be read: %v", remediations.PhaseLabel, phase, n.Name, j.Malformed)
	}
}

// findUndo finds the cordon and the taint that Drydock recorded as its own, as the end of the repair would.
func (t *traces) findUndo(n *corev1.Node, j remediations.Journal) error {
	undo := j.ToUndo()
	for key, r := range j.Records {
		if len(r.Undo) > 0 && len(r.Moves) > 0 {
			t.kept = append(t.kept, fmt.Sprintf("the leadership of location %s, which repair %s (%s) moved from %s", r.Location, r.ID, key, inspect.Led(r.Moves)))
		}
	}
	owned, err := owners.Cordon(n)
	if err != nil {
		return fmt.Errorf("looking for Drydock's cordon on %s: %w", n.Name, err)
	}
	recorded := slices.ContainsFunc(undo, func(u remediations.Undo) bool { return u.Kind == remediations.UndoCordon })
	switch {
	case !n.Spec.Unschedulable || !owned:
	case recorded:
		t.uncordon = true
		t.removed = append(t.removed, "Drydock's cordon")
	default:
		t.kept = append(t.kept, fmt.Sprintf("its cordon: Drydock set it, but no record on the node says so; to remove it: kubectl uncordon %s", n.Name))
	}
	for _, u := range undo {
		if u.Kind != remediations.UndoAnnotation {
			continue
		}
		ours, err := owners.Annotation(n, u.Key)
		if err != nil {
			return fmt.Errorf("looking for Drydock's annotation %s on %s: %w", u.Key, n.Name, err)
		}
		if ours {
			t.annotations, t.removed = append(t.annotations, u.Key), append(t.removed, "annotation "+u.Key)
		}
	}
	rest := slices.DeleteFunc(slices.Clone(n.Spec.Taints), func(taint corev1.Taint) bool {
		ours := slices.ContainsFunc(undo, func(u remediations.Undo) bool { return u.Set(taint) })
		if ours {
			t.removed = append(t.removed, "taint "+taint.Key)
		}
		return ours
	})
	if len(rest) < len(n.Spec.Taints) {
		t.taints = append([]corev1.Taint{}, rest...)
	}
	return nil
}

// unannounce removes Drydock's conditions from the Node as it was read, and has n be the Node as it is then.
func (t *traces) unannounce(ctx context.Context, c inspect.Client, n *corev1.Node, dryRun bool) error {
	if len(t.conditions) == 0 {
		return nil
	}
	o := metav1.PatchOptions{FieldManager: actions.FieldManager}
	if dryRun {
		o.DryRun = []string{metav1.DryRunAll}
	}
	text, err := announce.Patch(n, nil, t.conditions)
	if err != nil {
		return err
	}
	after, err := c.Nodes().Patch(ctx, n.Name, types.StrategicMergePatchType, text, o, "status")
	if err == nil && !dryRun {
		n.ResourceVersion = after.ResourceVersion
	}
	return err
}

// patch is one change for all of the rest, of the Node as it was read.
func (t *traces) patch(n *corev1.Node) map[string]any {
	annotations, labels, spec := map[string]any{}, map[string]any{}, map[string]any{}
	for _, key := range t.annotations {
		annotations[key] = nil
	}
	for _, key := range t.labels {
		labels[key] = nil
	}
	if t.uncordon {
		spec["unschedulable"] = nil
	}
	if t.taints != nil {
		spec["taints"] = t.taints
	}
	return map[string]any{
		"metadata": map[string]any{"uid": n.UID, "resourceVersion": n.ResourceVersion, "annotations": annotations, "labels": labels},
		"spec":     spec,
	}
}
