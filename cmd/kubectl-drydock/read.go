package main

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

	"drydock.dev/drydock/remediations"
)

const (
	// apiVersion and the kinds name what -o json and -o yaml print.
	apiVersion = "drydock.dev/v1alpha1"

	// ledgerSelector finds the ledger wherever Drydock was installed; ledgerNamespace is where it is by default.
	ledgerSelector  = "app.kubernetes.io/name=drydock,app.kubernetes.io/component=ledger"
	ledgerNamespace = "drydock"
	ledgerName      = "drydock-ledger"
)

// status is what Drydock is doing, as the ledger and the Nodes say.
type status struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Ledger     ledger `json:"ledger"`
	// Leader is the replica that leads, by the Lease of the ledger's namespace.
	Leader  leadership `json:"leader"`
	Repairs []repair   `json:"repairs"`
	// Ill are the Nodes that the breakers count, by scope, each with why.
	Ill map[string][]string `json:"ill,omitempty"`
}

// ledger is the ledger as it was read, or why it was not.
type ledger struct {
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Problem is why the rest is empty: missing, forbidden, or malformed.
	Problem string                     `json:"problem,omitempty"`
	Slots   []remediations.Slot        `json:"slots,omitempty"`
	Status  *remediations.LedgerStatus `json:"status,omitempty"`
	// Arrival is when the self-test's alert last arrived.
	Arrival *time.Time `json:"arrival,omitempty"`

	missing bool
	version string // of the Drydock that wrote it last
	whole   *remediations.Ledger
}

// repair is one record on a Node, or a Node that waits for one.
type repair struct {
	Node string `json:"node"`
	// Target is "node", "leader" or "sidecar-<hash>".
	Target string               `json:"target"`
	Record *remediations.Record `json:"record,omitempty"`
	// Problem is why there is no record to show, though the Node says that it has one.
	Problem string `json:"problem,omitempty"`
	// Alert is what a Node without a record waits with; Ill is why the breaker counts it.
	Alert *waiting `json:"alert,omitempty"`
	Ill   string   `json:"ill,omitempty"`
	// Hold is what holds it now.
	Hold *hold `json:"hold,omitempty"`
}

// waiting is an alert of a policy for which nothing was recorded yet.
type waiting struct {
	Name        string    `json:"alertname"`
	Policy      string    `json:"policy"`
	Fingerprint string    `json:"fingerprint"`
	ReceivedAt  time.Time `json:"receivedAt"`
}

// read gathers the status. The ledger comes last: a repair has its slot before it shows on its Node.
func (p *plugin) read(ctx context.Context, c client, of scope) (*status, error) {
	s := &status{APIVersion: apiVersion, Kind: "Status", Repairs: []repair{}}
	var nodes []*corev1.Node // in a large fleet most Nodes are well, and none of these is kept
	err := of.nodes(ctx, c, func(n *corev1.Node) {
		if of.well || len(of.names) > 0 || concerns(n) {
			nodes = append(nodes, n.DeepCopy())
		}
	})
	if err != nil {
		return nil, err
	}
	if s.Ledger, err = p.readLedger(ctx, c); err != nil {
		return nil, err
	}
	now := p.now()
	for _, n := range nodes {
		s.add(n, of, now)
	}
	if of.whole() {
		s.addOrphans()
	}
	slices.SortStableFunc(s.Repairs, func(a, b repair) int {
		return cmp.Or(a.rank()-b.rank(), cmp.Compare(a.Node, b.Node), cmp.Compare(a.Target, b.Target))
	})
	if s.Ledger.missing && !slices.ContainsFunc(s.Repairs, func(r repair) bool { return r.Record != nil || r.Problem != "" || r.Alert != nil }) {
		return nil, fmt.Errorf("no Drydock was found: %s, and no node has the label %s; check that `drydock run` is up and has become leader, and name its ledger with -n and --ledger where it is elsewhere",
			s.Ledger.Problem, remediations.PhaseLabel)
	}
	s.Leader, err = p.readLeader(ctx, c, s.Ledger.Namespace, p.lease)
	return s, err
}

// addOrphans adds the repairs whose Node is gone because its machine is being replaced: the ledger has them alone.
func (s *status) addOrphans() {
	if s.Ledger.whole == nil {
		return
	}
	for _, o := range s.Ledger.whole.Orphans {
		if slices.ContainsFunc(s.Repairs, func(r repair) bool { return r.Record != nil && r.Record.ID == o.Record.ID }) {
			continue
		}
		record := o.Record
		record.Phase, record.Note = remediations.Verifying, "the Node is gone; waiting for the machine that comes for it"
		s.Repairs = append(s.Repairs, repair{Node: o.Node, Target: "node", Record: &record})
	}
}

// repairsOn decodes every record that the Node carries.
func repairsOn(n *corev1.Node) []repair {
	var out []repair
	for key, value := range n.Annotations {
		target, ok := strings.CutPrefix(key, remediations.RepairPrefix)
		if !ok {
			continue
		}
		r := repair{Node: n.Name, Target: target}
		record, err := remediations.DecodeRecordOf(key, value)
		if err != nil {
			r.Problem = fmt.Sprintf("%v; nothing is done here until somebody drops it with `kubectl drydock reset %s`", err, n.Name)
		} else {
			r.Record = record
		}
		out = append(out, r)
	}
	if label, ok := n.Labels[remediations.PhaseLabel]; ok && len(out) == 0 {
		out = append(out, repair{Node: n.Name, Target: "node", Problem: fmt.Sprintf("the label %s=%s is there but no record", remediations.PhaseLabel, label)})
	}
	slices.SortFunc(out, func(a, b repair) int { return cmp.Compare(a.Target, b.Target) })
	return out
}

// rank puts first what a person must see: what cannot be read, what is in flight, what needs somebody.
func (r repair) rank() int {
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
	return 1 + slices.Index([]remediations.Phase{remediations.Acting, remediations.Verifying, remediations.Exhausted, remediations.Pending}, r.Record.Phase)
}

// readLedger finds the ledger by its labels in all namespaces, or by its name where -n says so or listing is forbidden.
func (p *plugin) readLedger(ctx context.Context, c client) (ledger, error) {
	namespace, where := *p.flags.Namespace, ""
	if namespace == "" {
		list, err := c.ConfigMaps(metav1.NamespaceAll).List(ctx, metav1.ListOptions{LabelSelector: ledgerSelector})
		switch {
		case apierrors.IsForbidden(err):
			where = " (and you may not list ConfigMaps in all namespaces: name Drydock's with -n)"
		case err != nil:
			return ledger{}, asking(err, "listing ConfigMaps to find the ledger", "")
		default:
			where = ", nor one with its labels in any other"
			found := slices.DeleteFunc(list.Items, func(cm corev1.ConfigMap) bool { return cm.Name != p.ledger })
			if len(found) == 1 {
				return decodeLedger(&found[0]), nil
			}
			if len(found) > 1 {
				return ledger{}, fmt.Errorf("there is more than one ledger: %s; say which with -n", namespaces(found))
			}
		}
		namespace = ledgerNamespace
	}
	cm, err := c.ConfigMaps(namespace).Get(ctx, p.ledger, metav1.GetOptions{})
	l := ledger{Namespace: namespace, Name: p.ledger}
	switch {
	case apierrors.IsNotFound(err):
		l.missing, l.Problem = true, fmt.Sprintf("there is no ConfigMap %s in namespace %s%s", p.ledger, namespace, where)
		return l, nil
	case apierrors.IsForbidden(err):
		l.Problem = fmt.Sprintf("you may not read it, so only the nodes are shown: %v", err)
		return l, nil
	case err != nil:
		return l, asking(err, "reading the ledger", "")
	}
	return decodeLedger(cm), nil
}

func namespaces(cms []corev1.ConfigMap) string {
	var names []string
	for _, cm := range cms {
		names = append(names, cm.Namespace+"/"+cm.Name)
	}
	return strings.Join(names, ", ")
}

func decodeLedger(cm *corev1.ConfigMap) ledger {
	l := ledger{Namespace: cm.Namespace, Name: cm.Name, version: cm.Annotations[remediations.VersionKey]}
	whole, err := remediations.DecodeLedger(cm.Data)
	switch {
	case errors.Is(err, remediations.ErrLedgerMalformed):
		l.Problem = fmt.Sprintf("%v; unless this plugin is older than Drydock, every repair is held: mend the ConfigMap, or delete it and it is made anew from the Nodes", err)
	case err != nil:
		l.Problem = err.Error()
	default:
		l.whole, l.Slots, l.Status = whole, whole.Slots, &whole.Status
		if !whole.Arrival.IsZero() {
			l.Arrival = &whole.Arrival
		}
	}
	return l
}
