package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
)

const (
	// APIVersion is the apiVersion of the objects that -o json and -o yaml print.
	APIVersion = "drydock.dev/v1alpha1"

	// ledgerSelector finds the ledger in any namespace. LedgerNamespace is its default namespace.
	ledgerSelector  = "app.kubernetes.io/name=drydock,app.kubernetes.io/component=ledger"
	LedgerNamespace = "drydock"
	LedgerName      = "drydock-ledger"
)

// Status is what Drydock does now, according to the ledger and the Nodes.
type Status struct {
	APIVersion string     `json:"apiVersion"`
	Kind       string     `json:"kind"`
	Cluster    Cluster    `json:"cluster,omitzero"`
	Ledger     Ledger     `json:"ledger"`
	Leader     Leadership `json:"leader"`
	Repairs    []Repair   `json:"repairs"`
	// Ill has the unhealthy Nodes that each breaker counts, with the reasons, by the breaker's scope.
	Ill map[string][]string `json:"ill,omitempty"`
	// Parked are the Nodes that are drained and wait for their next step. They count against the
	// limits, although the ledger has no slot for them.
	Parked []string `json:"parked,omitempty"`
	parked []place
	Paused []PausedNode `json:"paused,omitempty"`
	// Steps are for the Nodes that the caller named. StepsUnseen says why they are unknown.
	Steps       []Steps `json:"steps,omitempty"`
	StepsUnseen string  `json:"stepsUnseen,omitempty"`
}

// Ledger is Drydock's ledger as read, or why it could not be read.
type Ledger struct {
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Problem says why the other fields are empty: the ledger is missing, forbidden or malformed.
	Problem string         `json:"problem,omitempty"`
	Slots   []ledger.Slot  `json:"slots,omitempty"`
	Status  *ledger.Status `json:"status,omitempty"`
	Arrival *time.Time     `json:"arrival,omitempty"`

	// Aside names the installation that may act in the cluster. It is empty unless this installation
	// has no ledger because another one may act.
	Aside string `json:"-"`
	// Version is the Drydock program that last wrote the ledger. Whole is the decoded ledger.
	Missing bool           `json:"-"`
	Version string         `json:"-"`
	Whole   *ledger.Ledger `json:"-"`
}

// Repair is a row of the status: a repair on record, or a Node without one.
type Repair struct {
	Node string `json:"node"`
	// Target is "node", "leader" or "sidecar-<hash>".
	Target string               `json:"target"`
	Record *remediations.Record `json:"record,omitempty"`
	// Problem says why a record on the Node cannot be shown.
	Problem string `json:"problem,omitempty"`
	// Alert is the waiting alert of a Node without a record. Ill is why the breakers count the Node as
	// unhealthy.
	Alert *Waiting `json:"alert,omitempty"`
	Ill   string   `json:"ill,omitempty"`
	Hold  *Hold    `json:"hold,omitempty"`
}

// Waiting is an alert that a policy matches and that has no repair on record. Ended is empty if no
// repair has ended since the alert began to fire.
type Waiting struct {
	Name        string    `json:"alertname"`
	Policy      string    `json:"policy"`
	Fingerprint string    `json:"fingerprint"`
	ReceivedAt  time.Time `json:"receivedAt"`
	Ended       string    `json:"ended,omitempty"`
}

// Status reads the Nodes, and then the ledger. Drydock writes in the other order: first the
// repair's slot in the ledger, which counts the repair against the limits, then the record on the
// Node. So the ledger has the slot of each repair that was read from a Node.
func (r *Reader) Status(ctx context.Context, of Scope) (*Status, error) {
	s := &Status{APIVersion: APIVersion, Kind: "Status", Cluster: r.Cluster, Repairs: []Repair{}}
	var nodes []*corev1.Node // healthy Nodes are not kept: in a large fleet that would be most
	err := r.each(ctx, of, func(n *corev1.Node) {
		if of.Well || len(of.Names) > 0 || concerns(n) || marked(n) {
			nodes = append(nodes, n.DeepCopy())
		}
	})
	if err != nil {
		return nil, err
	}
	if s.Ledger, err = r.ReadLedger(ctx); err != nil {
		return nil, err
	}
	now := r.Now()
	for _, n := range nodes {
		s.add(n, of, now)
	}
	if of.whole() {
		s.addOrphans()
	}
	slices.SortStableFunc(s.Repairs, func(a, b Repair) int {
		return cmp.Or(a.rank()-b.rank(), cmp.Compare(a.Node, b.Node), cmp.Compare(a.Target, b.Target))
	})
	if s.Ledger.Missing && !slices.ContainsFunc(s.Repairs, func(r Repair) bool { return r.Record != nil || r.Problem != "" || r.Alert != nil }) {
		if s.Ledger.Aside != "" {
			return nil, fmt.Errorf("no ledger was found: %s", s.Ledger.Problem)
		}
		return nil, fmt.Errorf("no Drydock was found: %s, and no node has the label %s; check that `drydock run` runs and leads; if its ledger is in another namespace or has another name, give -n and --ledger",
			s.Ledger.Problem, remediations.PhaseLabel)
	}
	if len(of.Names) > 0 {
		if s.Steps, s.StepsUnseen, err = r.steps(ctx, nodes, s.Ledger.Namespace); err != nil {
			return nil, err
		}
	}
	s.Leader, err = r.ReadLeader(ctx, s.Ledger.Namespace, r.Lease)
	return s, err
}

// addOrphans adds repairs that only the ledger has: while a machine is replaced, its Node may be
// gone.
func (s *Status) addOrphans() {
	if s.Ledger.Whole == nil {
		return
	}
	for _, o := range s.Ledger.Whole.Orphans {
		if slices.ContainsFunc(s.Repairs, func(r Repair) bool { return r.Record != nil && r.Record.ID == o.Record.ID }) {
			continue
		}
		record := o.Record
		record.Phase, record.Note = remediations.PhaseVerifying, "the Node is gone; "+cmp.Or(record.Note, "waiting for the replacement machine")
		s.Repairs = append(s.Repairs, Repair{Node: o.Node, Target: "node", Record: &record})
	}
}

// RepairsOn decodes every record on the Node.
func RepairsOn(n *corev1.Node) []Repair {
	var out []Repair
	for key, value := range n.Annotations {
		target, ok := strings.CutPrefix(key, remediations.RepairPrefix)
		if !ok {
			continue
		}
		r := Repair{Node: n.Name, Target: target}
		record, err := remediations.DecodeRecordOf(key, value)
		if err != nil {
			r.Problem = fmt.Sprintf("%v; Drydock does nothing on this node until a person deletes the record with `kubectl drydock reset %s`", err, n.Name)
		} else {
			r.Record = record
		}
		out = append(out, r)
	}
	if label, ok := n.Labels[remediations.PhaseLabel]; ok && len(out) == 0 {
		out = append(out, Repair{Node: n.Name, Target: "node", Problem: fmt.Sprintf("the node has the label %s=%s but no record", remediations.PhaseLabel, label)})
	}
	slices.SortFunc(out, func(a, b Repair) int { return cmp.Compare(a.Target, b.Target) })
	return out
}

func (r Repair) rank() int {
	switch {
	case r.Record == nil && r.Problem != "":
		return 0
	case r.Alert != nil:
		return 10
	case r.Record == nil && r.Ill != "":
		return 11
	case r.Record == nil:
		return 12
	}
	return 1 + slices.Index([]remediations.Phase{remediations.PhaseActing, remediations.PhaseVerifying, remediations.PhaseExhausted, remediations.PhasePending}, r.Record.Phase)
}

// ReadLedger finds the ledger by its labels in all namespaces. If -n is given or listing is
// forbidden, it reads the ledger by its name.
func (r *Reader) ReadLedger(ctx context.Context) (Ledger, error) {
	namespace, where := r.Namespace, ""
	if namespace == "" {
		list, err := r.ConfigMaps(metav1.NamespaceAll).List(ctx, metav1.ListOptions{LabelSelector: ledgerSelector})
		switch {
		case apierrors.IsForbidden(err):
			where = " (you may not list ConfigMaps in all namespaces: give Drydock's namespace with -n)"
		case err != nil:
			return Ledger{}, Asking(err, "listing ConfigMaps to find the ledger", "")
		default:
			where = ", and no ConfigMap with the ledger's labels in any namespace"
			found := slices.DeleteFunc(list.Items, func(cm corev1.ConfigMap) bool { return cm.Name != r.Ledger })
			if len(found) == 1 {
				return DecodeLedger(&found[0]), nil
			}
			if len(found) > 1 {
				return Ledger{}, fmt.Errorf("there are several ledgers: %s; give the namespace of one with -n", namespaces(found))
			}
		}
		namespace = LedgerNamespace
	}
	cm, err := r.ConfigMaps(namespace).Get(ctx, r.Ledger, metav1.GetOptions{})
	l := Ledger{Namespace: namespace, Name: r.Ledger}
	switch {
	case apierrors.IsNotFound(err):
		l.Missing, l.Aside = true, r.inCharge(ctx, namespace)
		l.Problem = fmt.Sprintf("there is no ConfigMap %s in namespace %s%s", r.Ledger, namespace, where)
		if l.Aside != "" {
			l.Problem += "; " + l.Aside
		}
		return l, nil
	case apierrors.IsForbidden(err):
		l.Problem = fmt.Sprintf("you may not read the ledger, so only the nodes are shown: %v", err)
		return l, nil
	case err != nil:
		return l, Asking(err, "reading the ledger", "")
	}
	return DecodeLedger(cm), nil
}

// inCharge names the installation in another namespace that may act in the cluster. An installation
// that could never act has no ledger. It returns "" if the Lease cannot be read.
func (r *Reader) inCharge(ctx context.Context, namespace string) string {
	lease, err := r.Leases(metav1.NamespaceSystem).Get(ctx, chargeLease, metav1.GetOptions{})
	if err != nil || lease.Spec.HolderIdentity == nil {
		return ""
	}
	of, _, is := strings.Cut(*lease.Spec.HolderIdentity, "/")
	if !is || of == namespace {
		return ""
	}
	return fmt.Sprintf("the Drydock in namespace %s is not in charge of the cluster; the one in namespace %s is: use -n %[2]s", namespace, text.Line(of, 63))
}

// chargeLease is the default name of the Lease in kube-system. Only the installation that holds it
// may act.
const chargeLease = "drydock"

func namespaces(cms []corev1.ConfigMap) string {
	var names []string
	for _, cm := range cms {
		names = append(names, cm.Namespace+"/"+cm.Name)
	}
	return strings.Join(names, ", ")
}

// DecodeLedger returns the ledger in the ConfigMap, or why it cannot be read.
func DecodeLedger(cm *corev1.ConfigMap) Ledger {
	l := Ledger{Namespace: cm.Namespace, Name: cm.Name, Version: cm.Annotations[remediations.VersionKey]}
	whole, err := ledger.Decode(cm.Data)
	switch {
	case errors.Is(err, ledger.ErrMalformed):
		l.Problem = fmt.Sprintf("%v; if this plugin is not older than Drydock, Drydock holds every repair: correct the ConfigMap, or delete it (Drydock makes it again from the Nodes)", err)
	case err != nil:
		l.Problem = err.Error()
	default:
		l.Whole, l.Slots, l.Status = whole, whole.Slots, &whole.Status
		if !whole.Arrival.IsZero() {
			l.Arrival = &whole.Arrival
		}
	}
	return l
}
