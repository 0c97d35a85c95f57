package inspect

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/internal/config"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/alertmanager"
	"drydock.dev/drydock/remediations/alerts"
	"drydock.dev/drydock/remediations/fleet"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/signs"
)

// Observation is what the caller could read for a decision about one node.
type Observation struct {
	Node    *corev1.Node
	Ledger  Ledger
	cluster Cluster
	leader  Leadership
	// Config is nil if it could not be read. The plugin then cannot make Drydock's decision.
	Config *config.Config
	// Asked reports that the alerts come from Alertmanagers, and not from the Node's annotations.
	Asked bool
	State *lifecycle.State
	Now   time.Time
	// unseen has the sources that could not be read, with the reasons. lines has the same reasons, for
	// the output.
	unseen map[lifecycle.Source]string
	lines  []string
}

func (s *Observation) miss(source lifecycle.Source, why string) {
	s.unseen[source] = why
	s.lines = append(s.lines, why)
}

// Observe reads what a decision about the node depends on, with the caller's own rights.
func (r *Reader) Observe(ctx context.Context, name string, from Sources) (*Observation, error) {
	s := &Observation{cluster: r.Cluster, unseen: map[lifecycle.Source]string{}}
	var err error
	if s.Node, err = r.Nodes().Get(ctx, name, metav1.GetOptions{}); err != nil {
		return nil, Asking(err, "reading node "+name, name)
	}
	if s.Ledger, err = r.ReadLedger(ctx); err != nil {
		return nil, err
	}
	if s.Ledger.Whole == nil {
		s.miss(lifecycle.OnLedger, "the ledger: "+s.Ledger.Problem)
	}
	var unseen string
	if s.Config, unseen, err = r.configuration(ctx, from.Config, r.Namespace, s.Ledger.Namespace); err != nil {
		return nil, err
	}
	if s.Config == nil {
		s.lines = append(s.lines, unseen)
	}
	if err := r.readElection(ctx, s); err != nil {
		return nil, err
	}
	if s.Config == nil {
		s.Now = r.Now()
		return s, nil
	}
	nodes := []*corev1.Node{}
	err = r.EachNode(ctx, metav1.ListOptions{}, func(n *corev1.Node) error {
		nodes = append(nodes, n.DeepCopy())
		return nil
	})
	switch {
	case apierrors.IsForbidden(err):
		nodes = []*corev1.Node{s.Node}
		s.miss(lifecycle.OnFleet, fmt.Sprintf("the other nodes: %v", err))
	case err != nil:
		return nil, err
	}
	core := s.Config.Core
	s.compareLimits()
	s.State = &lifecycle.State{
		Config: core, Node: s.Node, Journal: core.Registry.ReadJournal(s.Node), NewID: "REPAIR-ID", Ledger: s.Ledger.Whole,
		Read: map[signs.Sign]signs.Testimony{},
	}
	if s.State.Ledger == nil {
		s.State.Ledger = &ledger.Ledger{}
	}
	if h := s.Ledger.Unwritten(s.Node); h != nil && h.Reason == remediations.ReasonWritesDenied {
		s.State.Denied = h.Message
	}
	if err := r.readLeases(ctx, s, nodes); err != nil {
		return nil, err
	}
	s.State.LookSince = r.Now()
	if s.State.Snapshot, err = r.ask(ctx, s, from.Alertmanagers); err != nil {
		return nil, err
	}
	s.Now = r.Now()
	roster := fleet.NewRoster(core)
	roster.Read(nodes)
	roster.Fire(s.fires(nodes))
	s.State.Fleet = roster.Fleet(s.State.Ledger, true, s.Now) // a copy: only the leader may change the ledger's breakers
	return s, nil
}

// readElection reads the Lease that the configuration names or, if it is unknown, the Lease that
// the command status reads.
func (r *Reader) readElection(ctx context.Context, s *Observation) (err error) {
	if s.Config != nil {
		s.leader, err = r.electedBy(ctx, s.Config)
	} else if s.leader, err = r.ReadLeader(ctx, s.Ledger.Namespace, r.Lease); s.Ledger.Missing && s.leader.absent() {
		s.leader.None = "no Drydock was found: " + s.Ledger.Problem + ", and no Lease " + s.leader.Lease + "; if Drydock runs in another namespace, name it with -n"
		s.leader.Unseen = ""
	}
	if s.leader.Unseen != "" {
		s.lines = append(s.lines, "whether a replica of Drydock leads: "+s.leader.Unseen)
	}
	return err
}

// fires returns since when an alert of a policy has been firing, by Node. If Alertmanager was
// asked, it counts only alerts that Alertmanager reports as firing.
func (s *Observation) fires(nodes []*corev1.Node) map[string]time.Time {
	since := map[string]time.Time{}
	for _, n := range nodes {
		for _, a := range firing(n) {
			p := s.Config.Core.Policy(a.Policy)
			if p != nil && p.Kind == remediations.KindNode && (!s.Asked || s.State.Snapshot.VerdictFor(a.Fingerprint, s.Config.Core, "").Reason == "") {
				since[n.Name] = a.StartsAt
			}
		}
	}
	return since
}

// readLeases counts the fresh Leases of all nodes that are not excluded, as the leading replica
// does. It keeps the Lease of the observed node.
func (r *Reader) readLeases(ctx context.Context, s *Observation, nodes []*corev1.Node) error {
	list, err := r.Leases(corev1.NamespaceNodeLease).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	switch {
	case apierrors.IsForbidden(err):
		s.miss(lifecycle.OnLeases, fmt.Sprintf("the leases of the nodes: %v", err))
		return nil
	case err != nil:
		return Asking(err, "listing the leases of the nodes", "")
	}
	h := &signs.Heartbeats{ReadAt: r.Now()}
	excluded := map[string]bool{}
	for _, n := range nodes {
		excluded[n.Name] = remediations.Excluded(n)
	}
	for _, l := range list.Items {
		if l.Spec.RenewTime == nil || l.Spec.LeaseDurationSeconds == nil {
			continue
		}
		lease := signs.Lease{ReadAt: h.ReadAt, RenewedAt: l.Spec.RenewTime.Time, Duration: time.Duration(*l.Spec.LeaseDurationSeconds) * time.Second}
		if !excluded[l.Name] {
			h.Count(lease)
		}
		if l.Name == s.Node.Name {
			s.State.Lease = &lease
			s.State.Read[signs.Sign{Kind: signs.StaleLease}] = signs.LeaseSays(lease)
		}
	}
	s.State.Heartbeats = h
	return nil
}

// compareLimits finds limits that differ from the ledger's: then Drydock runs with another
// configuration.
func (s *Observation) compareLimits() {
	if s.Ledger.Status == nil {
		return
	}
	read := s.Config.Core.Limits.Words()
	for _, name := range slices.Sorted(maps.Keys(read)) {
		if runs, known := s.Ledger.Status.Limits[name]; known && runs != read[name] {
			s.lines = append(s.lines, fmt.Sprintf("Drydock's configuration: limits.%s is %s in the configuration that was read, but Drydock runs with %s; give the right file with --config FILE", name, read[name], runs))
			return
		}
	}
}

// askWithin is longer than the engine's limit: here only one person waits for the answer, but in
// the engine the repairs of all nodes wait.
const askWithin = 15 * time.Second

func (r *Reader) ask(ctx context.Context, s *Observation, urls []string) (*alerts.Snapshot, error) {
	core, at := s.Config.Core, r.Now()
	if len(urls) == 0 {
		s.miss(lifecycle.OnAlerts, "Alertmanager was not asked; give its address with --alertmanager URL")
		r := alerts.Replica{Watchdog: true, WatchdogAt: at, Alerts: map[string]alerts.Alert{}}
		for _, a := range firing(s.Node) {
			r.Alerts[a.Fingerprint] = alerts.Alert{Labels: a.Labels, StartsAt: a.StartsAt, Active: true, Receivers: []string{core.Receiver}}
		}
		return &alerts.Snapshot{AskedAt: at, Replicas: []alerts.Replica{r}}, nil
	}
	o := alertmanager.Options{URLs: urls, Timeout: askWithin, Receiver: core.Receiver, SelfTest: core.IsSelfTest, Keep: func(labels map[string]string) bool {
		return core.Wants(labels) || s.names(labels)
	}, NodeLabels: core.NodeLabels()}
	o.Watchdog, o.BlindWhen = s.Config.Alertmanager.Selectors()
	client, err := alertmanager.New(o)
	if err != nil {
		return nil, fmt.Errorf("--alertmanager: %w", err)
	}
	defer client.Close()
	w := &alerts.Snapshot{AskedAt: at, Replicas: client.Look(ctx), WatchdogMisses: -1}
	s.Asked = true
	for _, r := range w.Replicas {
		if r.Err != nil {
			s.lines = append(s.lines, fmt.Sprintf("Alertmanager %s: %v", r.URL, r.Err))
		} else if r.Watchdog {
			w.WatchdogMisses = 0
		}
	}
	return w, nil
}

// names checks the node label of every policy, also if the policy does not match the alert.
func (s *Observation) names(labels map[string]string) bool {
	return slices.ContainsFunc(s.Config.Core.Policies, func(p *remediations.Policy) bool {
		return p.Kind == remediations.KindNode && slices.ContainsFunc(p.Labels, func(l string) bool { return labels[l] == s.Node.Name })
	})
}

// recorded uses a hold in r or in the ledger if this program could not ask the guard. It ignores a
// recorded hold that the Node contradicts.
func (s *Observation) recorded(a lifecycle.GuardAnswer, r *remediations.Record, c *lifecycle.Candidate) lifecycle.GuardAnswer {
	if a.Standing != lifecycle.GuardNotSeen {
		return a
	}
	if r != nil && r.Hold != nil && r.Hold.Reason == a.Reason && stands(s.Node, r.Hold, s.Now) {
		a.Standing, a.Message, a.Until = lifecycle.GuardHolds, r.Hold.Message+"; Drydock recorded this at "+Stamp(r.Hold.Since), r.Hold.Until
		return a
	}
	if why := s.Ledger.fleetwide(a.Reason, s.Node, c.Policy.Name, c.Step.Name); why != "" {
		a.Standing, a.Message = lifecycle.GuardHolds, why+"; from the ledger"
	} else if a.Reason == remediations.ReasonBlind && s.Ledger.Whole != nil {
		a.Message = strings.TrimSpace(a.Message + "; according to the ledger, Drydock is not blind")
	}
	return a
}
