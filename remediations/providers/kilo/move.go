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

// CallTimeout bounds a look or a move if one answer of Prometheus may take that long. It covers the
// list of all Nodes, and then either two addresses of Prometheus and the leases, or the keys of two
// nodes. Most moves change no more keys; the further keys of a larger move are written while the
// intent is young.
func CallTimeout(prometheus time.Duration) time.Duration {
	return listTimeout + 2*max(apiTimeout, prometheus) + apiTimeout
}

// Move makes the change if the location still is as the move describes it. It calls mayStill
// immediately before it writes each key. The outcome is never empty; the error says why it is not
// accepted, and what was changed.
func (m *Mesh) Move(ctx context.Context, move remediations.Move, mayStill func() error) (remediations.CallOutcome, error) {
	refuse := func(err error) (remediations.CallOutcome, error) {
		return remediations.CallRefused, fmt.Errorf("moving the leader's place of location %q from %s to %s: nothing was changed: %w", clip(move.Location), move.From, move.To, err)
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
			// Checked before each key, and again if another writer changed the node in between:
			// this process may have slept since the last key, and another process may have put it
			// back.
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
				done = []string{"nothing for certain"}
			}
			return remediations.CallUnknown, fmt.Errorf("moving the leader's place of location %q from %s to %s: done was %s; then: %w", clip(move.Location), move.From, move.To, strings.Join(done, ", "), err)
		}
	}
	return remediations.CallAccepted, nil
}

// still returns the edits for the move, if the location still is as it was at the decision.
func (v view) still(move remediations.Move, topologyLabel string) ([]member, []edit, error) {
	if why, _ := v.held(move.Location, topologyLabel); why != "" {
		return nil, nil, errors.New(why)
	}
	members, _ := v.of(move.Location)
	leader, ok := election.Foresee(nodes(members))
	if !ok || leader != move.From {
		return nil, nil, fmt.Errorf("it is led by %q now", leader)
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
		return nil, nil, fmt.Errorf("the keys %s of the location are not those any more that were put on record", election.LeaderKey)
	}
	return members, edits, nil
}

// stillThere returns an error if the node, read again, no longer allows the rest of the edits as
// planned.
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

// PutBack restores the keys that the move recorded in Before, where they still are as Move left
// them: the old leader's key first, the successor's last. It may be repeated, and then does
// nothing. If any node that the move names and that still exists is outside the location, PutBack
// writes nothing.
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
			continue // it is gone, or not Drydock's any more, or was put back before
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

// belongs returns why the node is outside the location, whether Kilo counts it now or not; nil: it
// belongs to it.
func (k *member) belongs(location string) error {
	if k.Location != location && k.declared != location {
		return fmt.Errorf("node %s is not in the location, so nothing is written there", k.Name)
	}
	return nil
}

func (m *Mesh) notPutBack(move remediations.Move, err error) error {
	return fmt.Errorf("putting back the leader's place of location %q from %s to %s: %w", clip(move.Location), move.To, move.From, err)
}

// back returns the edits that undo the move. Their order keeps the lead with one of the two nodes
// at every point.
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
	// errOthers: the key is no longer as it was.
	errOthers = errors.New("the key was changed by another writer")
	// errDoubt: it is unknown whether the change was made.
	errDoubt = errors.New("whether the change was made is unknown")
)

// write makes one edit, on the Node as it was read. It calls mayStill with the Node right before,
// and again with the Node that it reads after another writer changed it.
func (m *Mesh) write(ctx context.Context, members []member, e edit, mayStill func(member) error) (member, error) {
	k := *find(members, e.node)
	for range patchTries {
		switch {
		case k.uid != find(members, e.node).uid:
			return member{}, fmt.Errorf("node %s is another one by that name now", e.node)
		case same(k.key, e.to):
			return k, nil // an answer was lost, and the change was made
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
			return member{}, err // it may still arrive
		}
		if errRead != nil {
			return member{}, errRead
		}
		k = again
	}
	return member{}, fmt.Errorf("%s of node %s was not written: others wrote on the Node each of %d times", election.LeaderKey, e.node, patchTries)
}

// patch writes the one annotation, and nothing else, if the Node is still the one and the state
// that was read.
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

// refusedByServer reports that the API server answered, and that it did nothing.
func refusedByServer(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	code := status.Status().Code
	return code >= 400 && code < 500 && !apierrors.IsTimeout(err)
}
