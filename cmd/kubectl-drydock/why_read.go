package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/internal/config"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/alertmanager"
)

// sight is what the caller could see of one node and of all that its repair rests on.
type sight struct {
	node   *corev1.Node
	ledger ledger
	leader leadership
	// config is nil where it could not be read; then nothing can be decided.
	config *config.Config
	// asked: the word is the Alertmanagers' own. Otherwise it is what the Node says of its alerts.
	asked bool
	state *remediations.State
	now   time.Time
	// unseen says why something that a guard rests on was not seen, lines says all of that to people.
	unseen map[remediations.Source]string
	lines  []string
}

// miss notes what could not be seen.
func (s *sight) miss(source remediations.Source, why string) {
	s.unseen[source] = why
	s.lines = append(s.lines, why)
}

// look reads all that a decision about the node rests on, with the caller's own rights.
func (p *plugin) look(ctx context.Context, c client, name string, from sources) (*sight, error) {
	s := &sight{unseen: map[remediations.Source]string{}}
	var err error
	if s.node, err = c.Nodes().Get(ctx, name, metav1.GetOptions{}); err != nil {
		return nil, asking(err, "reading node "+name, name)
	}
	if s.ledger, err = p.readLedger(ctx, c); err != nil {
		return nil, err
	}
	if s.ledger.whole == nil {
		s.miss(remediations.OnLedger, "the ledger: "+s.ledger.Problem)
	}
	var unseen string
	if s.config, unseen, err = p.configuration(ctx, c, from.config, *p.flags.Namespace, s.ledger.Namespace); err != nil {
		return nil, err
	}
	if s.config == nil {
		s.lines = append(s.lines, unseen)
	}
	if err := p.readElection(ctx, c, s); err != nil {
		return nil, err
	}
	if s.config == nil {
		s.now = p.now()
		return s, nil
	}
	nodes := []*corev1.Node{}
	err = eachNode(ctx, c, metav1.ListOptions{}, func(n *corev1.Node) error {
		nodes = append(nodes, n.DeepCopy())
		return nil
	})
	switch {
	case apierrors.IsForbidden(err):
		nodes = []*corev1.Node{s.node}
		s.miss(remediations.OnFleet, fmt.Sprintf("the other nodes: %v", err))
	case err != nil:
		return nil, err
	}
	core := s.config.Core
	s.state = &remediations.State{
		Config: core, Node: s.node, Journal: core.Registry.ReadJournal(s.node), NewID: "REPAIR-ID", Ledger: s.ledger.whole,
		Read: map[remediations.Sign]remediations.Testimony{},
	}
	if s.state.Ledger == nil {
		s.state.Ledger = &remediations.Ledger{}
	}
	if err := p.readLeases(ctx, c, s); err != nil {
		return nil, err
	}
	s.state.LookSince = p.now()
	if s.state.Word, err = p.ask(ctx, s, from.alertmanagers); err != nil {
		return nil, err
	}
	s.now = p.now()
	roster := remediations.NewRoster(core)
	roster.Read(nodes)
	s.state.Fleet = roster.Fleet(s.state.Ledger, s.fires(nodes), true, s.now) // the leader alone moves the breakers
	return s, nil
}

// readElection reads which replica leads. Without the configuration the Lease is the one that status reads.
func (p *plugin) readElection(ctx context.Context, c client, s *sight) (err error) {
	if s.config != nil {
		s.leader, err = p.electedBy(ctx, c, s.config)
	} else if s.leader, err = p.readLeader(ctx, c, s.ledger.Namespace, p.lease); s.ledger.missing && s.leader.absent() {
		s.leader.None = "no Drydock was found: " + s.ledger.Problem + ", and no Lease " + s.leader.Lease + "; where it is elsewhere, name its namespace with -n"
		s.leader.Unseen = ""
	}
	if s.leader.Unseen != "" {
		s.lines = append(s.lines, "whether a replica of Drydock leads: "+s.leader.Unseen)
	}
	return err
}

// fires says whether an alert of a policy about the node itself fires, as far as was seen.
func (s *sight) fires(nodes []*corev1.Node) func(string) bool {
	active := map[string]bool{}
	for _, n := range nodes {
		active[n.Name] = slices.ContainsFunc(firing(n), func(a remediations.Alert) bool {
			p := s.config.Core.Policy(a.Policy)
			return p != nil && p.Kind == remediations.KindNode && (!s.asked || s.state.Word.About(a.Fingerprint, s.config.Core, "").Reason == "")
		})
	}
	return func(name string) bool { return active[name] }
}

// readLeases counts the heartbeats of all nodes, and keeps the node's own.
func (p *plugin) readLeases(ctx context.Context, c client, s *sight) error {
	list, err := c.Leases(corev1.NamespaceNodeLease).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	switch {
	case apierrors.IsForbidden(err):
		s.miss(remediations.OnLeases, fmt.Sprintf("the leases of the nodes: %v", err))
		return nil
	case err != nil:
		return asking(err, "listing the leases of the nodes", "")
	}
	h := &remediations.Heartbeats{ReadAt: p.now()}
	for _, l := range list.Items {
		if l.Spec.RenewTime == nil || l.Spec.LeaseDurationSeconds == nil {
			continue
		}
		lease := remediations.Lease{ReadAt: h.ReadAt, RenewedAt: l.Spec.RenewTime.Time, Duration: time.Duration(*l.Spec.LeaseDurationSeconds) * time.Second}
		h.Count(lease)
		if l.Name == s.node.Name {
			s.state.Lease = &lease
			s.state.Read[remediations.Sign{Kind: remediations.SignStaleLease}] = remediations.LeaseSays(lease)
		}
	}
	s.state.Heartbeats = h
	return nil
}

// ask asks the Alertmanagers of the addresses. Without an address the word is what the Node says: its alerts fire.
func (p *plugin) ask(ctx context.Context, s *sight, urls []string) (*remediations.Word, error) {
	core, at := s.config.Core, p.now()
	if len(urls) == 0 {
		s.miss(remediations.OnAlerts, "Alertmanager was not asked; give --alertmanager URL")
		r := remediations.ReplicaWord{Watchdog: true, WatchdogAt: at, Alerts: map[string]remediations.AlertWord{}}
		for _, a := range firing(s.node) {
			r.Alerts[a.Fingerprint] = remediations.AlertWord{Labels: a.Labels, StartsAt: a.StartsAt, Active: true, Receivers: []string{core.Receiver}}
		}
		return &remediations.Word{AskedAt: at, Replicas: []remediations.ReplicaWord{r}}, nil
	}
	o := alertmanager.Options{URLs: urls, Receiver: core.Receiver, SelfTest: core.IsSelfTest, Now: p.now, Keep: func(labels map[string]string) bool {
		return core.Wants(labels) || s.names(labels)
	}}
	o.Watchdog, o.BlindWhen = s.config.Alertmanager.Selectors()
	client, err := alertmanager.New(o)
	if err != nil {
		return nil, fmt.Errorf("--alertmanager: %w", err)
	}
	defer client.Close()
	w := &remediations.Word{AskedAt: at, Replicas: client.Look(ctx), WatchdogMisses: -1}
	s.asked = true
	for _, r := range w.Replicas {
		if r.Err != nil {
			s.lines = append(s.lines, fmt.Sprintf("Alertmanager %s: %v", r.URL, r.Err))
		} else if r.Watchdog {
			w.WatchdogMisses = 0
		}
	}
	return w, nil
}

// names says that an alert with these labels names the node, by the label of any policy, whether that takes it or not.
func (s *sight) names(labels map[string]string) bool {
	return slices.ContainsFunc(s.config.Core.Policies, func(p *remediations.Policy) bool {
		return p.Kind == remediations.KindNode && slices.ContainsFunc(p.Labels, func(l string) bool { return labels[l] == s.node.Name })
	})
}

// told is what the leader wrote of a guard that could not be asked here, where nothing on the Node contradicts it.
func (s *sight) told(a remediations.GuardAnswer, policy string) remediations.GuardAnswer {
	if a.Standing != remediations.GuardNotSeen {
		return a
	}
	if r := s.state.Journal.Record; r != nil && r.Hold != nil && r.Hold.Reason == a.Reason && stands(s.node, r.Hold, s.now) {
		a.Standing, a.Message, a.Until = remediations.GuardHolds, r.Hold.Message+"; Drydock wrote that at "+stamp(r.Hold.Since), r.Hold.Until
		return a
	}
	if why := s.ledger.fleetwide(a.Reason, s.node, policy); why != "" {
		a.Standing, a.Message = remediations.GuardHolds, why+"; so the ledger says"
	} else if a.Reason == remediations.Blind && s.ledger.whole != nil {
		a.Message = strings.TrimSpace(a.Message + "; the ledger says that Drydock is not blind")
	}
	return a
}
