package kilo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/providers/kilo/election"
)

// CallTimeout returns the time limit of one Look or Move. prometheus is the time limit of one
// answer of Prometheus. A Look needs the list of all Nodes, the answers of two addresses of
// Prometheus, and the leases; a Move needs the list and writes on two Nodes, rarely on more.
func CallTimeout(prometheus time.Duration) time.Duration {
	return listTimeout + 2*max(apiTimeout, prometheus) + apiTimeout
}

// Move carries out the move if the location is still as the move describes it. It calls mayStill
// immediately before each write. If the outcome is not CallAccepted, the error says why, and what
// was changed.
func (m *Mesh) Move(ctx context.Context, move remediations.Move, mayStill func() error) (remediations.CallOutcome, error) {
	refuse := func(err error) (remediations.CallOutcome, error) {
		return remediations.CallRefused, fmt.Errorf("moving the lead of location %q from %s to %s: nothing was changed: %w", clip(move.Location), move.From, move.To, err)
	}
	leave, err := m.enter(ctx)
	if err != nil {
		return refuse(err)
	}
	defer leave()
	v, err := m.read(ctx)
	if err != nil {
		return refuse(err)
	}
	members, edits, err := v.still(move, m.options.TopologyLabel)
	if err != nil {
		return refuse(err)
	}
	var done []string
	for i, e := range edits {
		first := i == 0
		written, err := m.write(ctx, members, e, func(k member) error {
			// This check runs before each write, and again if another writer changed the node.
			// Since the last write, this process may have been suspended, and another process may
			// have put the annotation back.
			if err := mayStill(); err != nil {
				return err
			}
			return stillThere(members, k, edits[i:], move)
		})
		switch {
		case err == nil:
			*find(members, e.node) = written
			done = append(done, e.String())
		case first && !errors.Is(err, errDoubt):
			return refuse(err)
		default:
			if len(done) == 0 {
				done = []string{"nothing is certain"}
			}
			return remediations.CallUnknown, fmt.Errorf("moving the lead of location %q from %s to %s: written so far: %s; then: %w", clip(move.Location), move.From, move.To, strings.Join(done, ", "), err)
		}
	}
	return remediations.CallAccepted, nil
}

func (v view) still(move remediations.Move, topologyLabel string) ([]member, []edit, error) {
	if why, _ := v.held(move.Location, topologyLabel); why != "" {
		return nil, nil, errors.New(why)
	}
	members, _ := v.of(move.Location)
	leader, ok := election.Foresee(nodes(members))
	if !ok || leader != move.From {
		return nil, nil, fmt.Errorf("the location's leader is now %q", leader)
	}
	to := find(members, move.To)
	if to == nil {
		return nil, nil, fmt.Errorf("%s is not a node of the location that Kilo counts now", move.To)
	}
	if why := to.unfit; why != "" {
		return nil, nil, fmt.Errorf("%s is not fit to lead now: %s", move.To, why)
	}
	if why := unreachable(find(members, leader).Node, to.Node); why != "" {
		return nil, nil, fmt.Errorf("%s is not fit to lead now: %s", move.To, why)
	}
	edits, err := plan(members, move.From, move.To)
	if err != nil {
		return nil, nil, err
	}
	if !maps.EqualFunc(moveOf(move.Location, move.From, move.To, edits).Before, move.Before, same) {
		return nil, nil, fmt.Errorf("the annotations %s of the location have changed since the decision", election.LeaderKey)
	}
	return members, edits, nil
}

func stillThere(members []member, k member, rest []edit, move remediations.Move) error {
	if k.Location != move.Location {
		return fmt.Errorf("node %s is not in the location any more", k.Name)
	}
	if k.Name == move.To && (k.notReady != "" || k.unfit != "") {
		return fmt.Errorf("%s is not fit to lead any more: %s", k.Name, k.notReady+k.unfit)
	}
	var now []election.Node
	for _, other := range members {
		if other.Name == k.Name {
			other = k
		}
		if other.notReady == "" {
			now = append(now, other.Node)
		}
	}
	return foresee(now, rest, move.From, move.To)
}

// PutBack restores the leader annotations in move.Before: first that of the old leader, last that
// of the successor. It skips an annotation that others have changed since, and writes nothing if a
// node of the move now belongs to another location. A second call has no further effect.
func (m *Mesh) PutBack(ctx context.Context, move remediations.Move) error {
	leave, err := m.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	v, err := m.read(ctx)
	if err != nil {
		return m.notPutBack(move, err)
	}
	members := []member(v)
	for _, name := range append(slices.Sorted(maps.Keys(move.Before)), move.From, move.To) {
		if k := find(members, name); k != nil {
			if err := k.belongs(move.Location); err != nil {
				return m.notPutBack(move, err)
			}
		}
	}
	for _, e := range back(move) {
		k := find(members, e.node)
		if k == nil || !same(k.key, e.from) {
			continue // the node is gone, or another writer changed the annotation, or it was put back before
		}
		written, err := m.write(ctx, members, e, func(k member) error { return k.belongs(move.Location) })
		switch {
		case apierrors.IsNotFound(err), errors.Is(err, errOthers):
			continue
		case err != nil:
			return m.notPutBack(move, err)
		}
		*find(members, e.node) = written
	}
	return nil
}

func (k *member) belongs(location string) error {
	if k.Location != location && k.declared != location {
		return fmt.Errorf("node %s is not in the location, so nothing is written there", k.Name)
	}
	return nil
}

func (m *Mesh) notPutBack(move remediations.Move, err error) error {
	return fmt.Errorf("putting back the lead of location %q from %s to %s: %w", clip(move.Location), move.To, move.From, err)
}

// At every point of these edits, the old or the new leader leads.
func back(move remediations.Move) []edit {
	names := slices.Sorted(maps.Keys(move.Before))
	rank := func(name string) int {
		return map[string]int{move.From: -1, move.To: 1}[name]
	}
	slices.SortStableFunc(names, func(a, b string) int { return rank(a) - rank(b) })
	var out []edit
	for _, name := range names {
		e := edit{node: name, to: move.Before[name]}
		if value := leaderValue; name == move.To {
			e.from = &value
		}
		out = append(out, e)
	}
	return out
}

func (e edit) String() string {
	if e.to == nil {
		return election.LeaderKey + " off " + e.node
	}
	return election.LeaderKey + " on " + e.node
}

func same(a, b *string) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

var (
	errOthers = errors.New("the key was changed by another writer")
	errDoubt  = errors.New("whether the change was made is unknown")
)

// write calls mayStill with the Node right before the write. If another writer changed the Node
// meanwhile, write reads the Node again, calls mayStill again, and tries again. It never replaces a
// leader annotation that has changed since it was read.
func (m *Mesh) write(ctx context.Context, members []member, e edit, mayStill func(member) error) (member, error) {
	k := *find(members, e.node)
	for range patchTries {
		switch {
		case k.uid != find(members, e.node).uid:
			return member{}, fmt.Errorf("node %s was replaced (other UID)", e.node)
		case same(k.key, e.to):
			return k, nil // the change was made, but its answer was lost
		case !same(k.key, e.from):
			return member{}, fmt.Errorf("%s of node %s: %w", election.LeaderKey, e.node, errOthers)
		}
		if err := mayStill(k); err != nil {
			return member{}, err
		}
		written, err := m.patch(ctx, k, e)
		if err == nil {
			return written, nil
		}
		if !apierrors.IsConflict(err) && !errors.Is(err, errDoubt) {
			return member{}, err
		}
		again, errRead := m.reread(ctx, e.node)
		if errors.Is(err, errDoubt) && (errRead != nil || !same(again.key, e.to)) {
			return member{}, err // the API server may still carry out the write
		}
		if errRead != nil {
			return member{}, errRead
		}
		k = again
	}
	return member{}, fmt.Errorf("%s of node %s was not written: other programs changed the Node at each of %d tries", election.LeaderKey, e.node, patchTries)
}

// The API server refuses the patch if the Node was replaced or changed since it was read.
func (m *Mesh) patch(ctx context.Context, k member, e edit) (member, error) {
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": k.uid, "resourceVersion": k.version, "annotations": map[string]*string{election.LeaderKey: e.to},
	}})
	if err != nil {
		return member{}, fmt.Errorf("encoding a patch of Node %s: %w", e.node, err)
	}
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	n, err := m.options.API.Patch(ctx, e.node, types.MergePatchType, body, metav1.PatchOptions{FieldManager: remediations.FieldManager})
	switch {
	case err == nil:
		return m.member(n), nil
	case refusedByServer(err):
		return member{}, fmt.Errorf("writing %s: %w", e, err)
	}
	return member{}, fmt.Errorf("writing %s: %w: %w", e, errDoubt, err)
}

func refusedByServer(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	code := status.Status().Code
	return code >= 400 && code < 500 && !apierrors.IsTimeout(err)
}
