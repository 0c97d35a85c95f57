package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	kilo "drydock.dev/drydock/remediations/providers/kilo/election"
	"drydock.dev/drydock/remediations/targets/location"
)

// leaderPort is the provider of leaders.
type leaderPort struct{ *instance }

func (l leaderPort) Leads(location string) string {
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	return kilo.Elect(l.w.kilos(l.view)[location])
}

func (l leaderPort) LeadsAll() func(string) string { return l.Leads }

// Look answers after a while with the state from when it began. A real network can do no worse.
func (l leaderPort) Look(_ context.Context, location string) location.Observation {
	l.enter("look at location", false)
	l.w.mu.Lock()
	s, takes := l.w.sight(location), l.w.mesh.lookTakes
	if l.w.mesh.looking++; l.w.mesh.looking > 10 && len(l.w.instances) == 1 {
		l.w.fail("11: %d looks at locations at once", l.w.mesh.looking)
	}
	l.w.mu.Unlock()
	time.Sleep(takes)
	l.w.do(func() { l.w.mesh.looking-- })
	return s
}

// Move looks again and writes the keys, the successor's first. Before each key it calls mayStill.
func (l leaderPort) Move(ctx context.Context, m remediations.Move, mayStill func() error) (remediations.CallOutcome, error) {
	l.enter("move "+m.To, false)
	mood := at(l.w, func() providerMood { return l.w.mesh.mood })
	time.Sleep(mood.before)
	l.alive()
	now := at(l.w, func() location.Observation { return l.w.sight(m.Location) })
	as := func(c remediations.Move) bool { return c.To == m.To && sameBefore(c.Before, m.Before) }
	switch {
	case at(l.w, func() bool { return l.w.mesh.blindly }):
	case now.Leader != m.From || now.Held != "" || now.Unknown != "" || !slices.ContainsFunc(now.Candidates, as):
		return remediations.CallRefused, fmt.Errorf("location %s is not as it was: %s leads it", m.Location, now.Leader)
	}
	written := 0
	err := l.write(m, true, func() error {
		if written > 0 {
			time.Sleep(mood.between)
			l.alive()
		}
		if never := at(l.w, func() bool { return l.w.lies.neverAsk || (l.w.lies.askOnce && written > 0) }); !never {
			if err := mayStill(); err != nil {
				return err
			}
		}
		if mood.refuse && written == 0 {
			return errors.New("nodes is forbidden")
		}
		if written++; written == 1 {
			l.w.do(func() { l.w.checkMove(l.instance, m) })
		}
		l.w.do(func() { l.w.checkKey(l.instance, m) })
		return nil
	})
	switch {
	case err != nil && written == 0:
		return remediations.CallRefused, err
	case err != nil:
		return remediations.CallUnknown, err
	}
	select {
	case <-time.After(mood.after):
	case <-ctx.Done():
		mood.cut = true
	}
	l.alive()
	if mood.cut {
		return remediations.CallUnknown, errors.New("connection reset")
	}
	return remediations.CallAccepted, nil
}

func (l leaderPort) alive() {
	if at(l.w, func() bool { return l.dead }) {
		runtime.Goexit()
	}
}

// PutBack undoes what Move wrote, the old keys first.
func (l leaderPort) PutBack(_ context.Context, m remediations.Move) error {
	l.enter("put back "+m.To, false)
	if at(l.w, func() bool { return l.w.mesh.backFails }) {
		return errLost
	}
	l.w.do(func() { l.w.checkBack(l.instance, m) })
	return l.write(m, false, func() error { return nil })
}

// write sets the keys of the move, or restores the keys from before. It calls mayStill before each
// key. Each write may be lost, or may be the last one of its process.
func (l leaderPort) write(m remediations.Move, forth bool, ask func() error) error {
	// The successor's key is first and the old leader's last, so that no other node leads in
	// between. Putting back uses the reverse order.
	rank := map[string]int{m.To: -1, m.From: 1}
	order := slices.SortedFunc(maps.Keys(m.Before), func(a, b string) int {
		if forth {
			return rank[a] - rank[b]
		}
		return rank[b] - rank[a]
	})
	for _, name := range order {
		if err := ask(); err != nil {
			return err
		}
		fatal := l.enter("key of "+name, true)
		err := at(l.w, func() error {
			fault := l.fault("key")
			n := l.w.nodes[name]
			if fault == "lost" || fault == "conflict" || (n == nil && forth) {
				return errLost
			}
			if n == nil {
				return nil // its key was deleted with it
			}
			value, has := n.Annotations[kilo.LeaderKey]
			switch before := m.Before[name]; {
			case forth && before == nil:
				l.w.edit(name, edit(kilo.LeaderKey, "drydock"))
			case forth, before == nil && value == "drydock":
				l.w.edit(name, func(n *corev1.Node) { delete(n.Annotations, kilo.LeaderKey) })
			case before != nil && !has:
				l.w.edit(name, edit(kilo.LeaderKey, *before))
			}
			if leader := l.w.mesh.places[m.Location].leader; forth && !l.w.mesh.blindly && leader != m.From && leader != m.To {
				l.w.fail("S2: %s leads %s in the middle of a move from %s to %s", leader, m.Location, m.From, m.To)
			}
			if fault == "written" {
				return errLost
			}
			return nil
		})
		l.w.do(func() { l.dead = l.dead || fatal })
		l.alive()
		if err != nil {
			return err
		}
	}
	return nil
}

func sameBefore(a, b map[string]*string) bool {
	return maps.EqualFunc(a, b, func(x, y *string) bool { return (x == nil) == (y == nil) && (x == nil || *x == *y) })
}
