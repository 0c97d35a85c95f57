package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"drydock.dev/drydock/remediations"
)

// provider carries out one remediation. Its mood decides how.
type provider struct {
	*instance
	step string
}

// Act carries out the remediation. If a call outlives its process, its request may have been sent
// or not. What it did stays done.
func (r provider) Act(ctx context.Context, m Machine, mayStill func() error) (remediations.CallOutcome, error) {
	fatal := r.enter("act "+m.Node, true)
	outcome, err := r.act(ctx, m, mayStill, fatal)
	if outcome == remediations.CallRefused {
		r.w.do(func() { r.w.tried(m, err) })
	}
	return outcome, err
}

func (r provider) act(ctx context.Context, m Machine, mayStill func() error, fatal bool) (remediations.CallOutcome, error) {
	mood := at(r.w, func() providerMood { return r.w.mood })
	time.Sleep(mood.before)
	if at(r.w, func() bool { return r.dead }) {
		runtime.Goexit()
	}
	switch {
	case mood.account:
		r.w.do(func() { r.w.accountRefused[m.Node] = true })
		return remediations.CallRefused, fmt.Errorf("%w: the key was revoked", ErrAccount)
	case mood.unread:
		return remediations.CallRefused, ofAll{fmt.Errorf("reading the machine of node %s: %w", m.Node, ErrPassing)}
	case mood.unreached && mood.fleetwide:
		return remediations.CallRefused, ofAll{fmt.Errorf("%s: %w", mood.trouble, ErrPassing)}
	}
	if err := at(r.w, func() error { return r.w.odd[m.Node] }); err != nil {
		r.w.do(func() { r.w.accountRefused[m.Node] = r.w.accountRefused[m.Node] || errors.Is(err, ErrAccount) })
		return remediations.CallRefused, err
	}
	if !at(r.w, func() bool { return r.w.lies.neverAsk }) {
		if err := mayStill(); err != nil {
			return remediations.CallRefused, err
		}
	}
	switch {
	case mood.refuse:
		return remediations.CallRefused, errors.New("no quota")
	case mood.later:
		return remediations.CallRefused, fmt.Errorf("machine %s is still starting: %w", m.Node, ErrLater)
	}
	r.w.do(func() {
		r.w.checkCall(r.instance, r.step, m)
		switch {
		case mood.idle:
		case r.step == "reboot" && r.w.outlets:
			r.w.powerOff(m.Node, m.Attempt)
			if x := r.w.machines[m.Node]; x != nil && !x.offSince.IsZero() {
				x.offBy = m.Attempt // it may have been off already
			}
		case r.step == "reboot":
			r.w.reboot(m.Node)
		case r.step == "powerOff":
			r.w.in(r.w.powerTakes, func() { r.w.powerOff(m.Node, m.Attempt) })
		case r.step == "replace":
			r.w.recycle(m.Node, m.ProviderID)
		case slices.Contains(podSteps, r.step):
			r.w.restartPod(m.Node)
		case slices.Contains(wideSteps, r.step):
			for n := range r.w.machines {
				r.w.restartPod(n)
			}
		default:
			r.w.restartKubelet(m.Node)
		}
		r.dead = r.dead || fatal
	})
	if mood.after > 0 {
		select {
		case <-time.After(mood.after):
		case <-ctx.Done():
			mood.cut = true
			if mood.late {
				go r.late(m, mood.after-callTimeout)
			}
		}
	}
	if at(r.w, func() bool { return r.dead }) {
		runtime.Goexit()
	}
	if mood.cut {
		return remediations.CallUnknown, errors.New("connection reset")
	}
	return remediations.CallAccepted, nil
}

// late answers an attempt that was given up.
func (r provider) late(m Machine, after time.Duration) {
	time.Sleep(after)
	if !at(r.w, func() bool { return r.dead }) {
		r.engine.Late(m.Node, m.Attempt, remediations.CallAccepted, nil)
	}
}
