package rescue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/rescue/apiserver"
)

const rescueStep = "restart-kubelet"

const (
	// atOnce bounds the decisions in one pass: one rescue ends, the next one begins, its intent is
	// written. Then the next pass waits for soon.
	atOnce, soon = 8, 50 * time.Millisecond
	// idle is the longest time between two passes. later is the wait after the state directory
	// could not be read or written.
	idle, later = time.Minute, 2 * time.Second
)

// pass returns the time until the next pass.
func (r *Rescue) pass(ctx context.Context) time.Duration {
	for range atOnce {
		s, err := r.gather()
		if err != nil {
			r.Log.Error(err, "the state directory cannot be read, so Drydock restarts no API server")
			return later
		}
		now := r.Clock.Now()
		d := r.core.decide(s, now)
		again, err := r.apply(ctx, s, d, now)
		if err != nil {
			r.Log.Error(err, "the state directory cannot be written, so Drydock restarts no API server")
			return later
		}
		if again && ctx.Err() == nil {
			continue
		}
		r.publish(s, d)
		r.remind(ctx, s.Journal)
		wait := idle
		if !d.Recheck.IsZero() {
			wait = min(wait, max(d.Recheck.Sub(r.Clock.Now()), time.Millisecond))
		}
		return wait
	}
	return soon
}

// gather also finds out whether people have changed their files since the last pass.
func (r *Rescue) gather() (*apiserver.State, error) {
	j, err := r.Journal.Load()
	if err != nil {
		return nil, err
	}
	r.forgetTorn(r.Clock.Now())
	said := people{reset: j.Reset, malformed: j.Malformed != nil, isPaused: j.Paused != nil}
	if said.isPaused {
		said.paused = *j.Paused
	}
	if said != r.said {
		// A person who removes a pause may have created a silence just before. So Alertmanager must
		// be polled again.
		r.said, r.lookSince = said, r.Clock.Now()
	}
	if r.newID == "" || knows(j, r.newID) {
		r.newID = r.NewID()
	}
	return &apiserver.State{
		Config: r.Config, Journal: j, Snapshot: r.word, Alerts: r.noteAlerts(), Sights: r.sights,
		Call: r.call, LookSince: r.lookSince, WellSince: r.wellSince, NewID: r.newID,
	}, nil
}

func knows(j apiserver.RescueJournal, id string) bool {
	return (j.Rescue != nil && j.Rescue.ID == id) || slices.ContainsFunc(j.Ended, func(e apiserver.EndedRescue) bool { return e.ID == id })
}

// noteAlerts also stores when this process first and last received each alert.
func (r *Rescue) noteAlerts() []remediations.Alert {
	now, first := r.Clock.Now(), map[string]time.Time{}
	for fingerprint, h := range r.received {
		if now.Sub(h.last) > postedFor {
			delete(r.received, fingerprint)
			continue
		}
		h.first = remediations.Earlier(h.first, now) // if the clock was set back, first must not stay in the future
		r.received[fingerprint], first[fingerprint] = h, h.first
	}
	out := apiserver.Alerts(r.Config, r.word, r.takePosts(), first)
	for _, a := range out {
		h, known := r.received[a.Fingerprint]
		if !known {
			h.first = a.ReceivedAt
		}
		h.last = now
		r.received[a.Fingerprint] = h
	}
	return out
}

// takePosts deletes older posts.
func (r *Rescue) takePosts() (out []remediations.Alert) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for fingerprint, a := range r.posted {
		if r.Clock.Now().Sub(a.ReceivedAt) > postedFor {
			delete(r.posted, fingerprint)
			continue
		}
		out = append(out, a)
	}
	return out
}

// again means that the next decision must follow without a wait.
func (r *Rescue) apply(ctx context.Context, s *apiserver.State, d apiserver.Decision, now time.Time) (again bool, err error) {
	switch {
	case !d.Well:
		r.wellSince = time.Time{}
	case r.wellSince.IsZero():
		r.wellSince = now
	}
	if d.AskAlerts {
		r.look(ctx)
	}
	if d.AskSights {
		r.see(ctx)
	}
	switch d.Verb {
	case lifecycle.VerbIssue:
		return false, r.issue(ctx, s, d, now)
	case lifecycle.VerbReset:
		return true, r.reset(s, d)
	case lifecycle.VerbHold, lifecycle.VerbVerify, lifecycle.VerbEnd, lifecycle.VerbDrop,
		lifecycle.VerbRest, lifecycle.VerbLook, lifecycle.VerbWait, lifecycle.VerbResume:
	}
	if len(d.Write) > 0 {
		if err := r.Journal.Append(d.Write...); err != nil {
			return false, err
		}
		if d.Verb == lifecycle.VerbVerify {
			r.call, r.wellSince = nil, time.Time{}
		}
	}
	r.emit(s, d)
	return d.Verb == lifecycle.VerbVerify || d.Verb == lifecycle.VerbEnd, nil
}

// An error is only logged, because the caller writes such an entry again later.
func (r *Rescue) append(entries ...apiserver.RescueEntry) {
	if err := r.Journal.Append(entries...); err != nil {
		r.Log.Error(err, "the state directory cannot be written")
	}
}

// No decision may depend on observations from before the machine was suspended or its clock was
// set.
func (r *Rescue) forgetTorn(now time.Time) {
	if r.word != nil && engine.Torn(r.word.AskedAt, now) {
		r.word = nil
	}
	for _, seen := range r.sights {
		if engine.Torn(seen.At, now) {
			r.sights = map[string]apiserver.HostSight{}
			break
		}
	}
	if engine.Torn(r.wellSince, now) {
		r.wellSince = time.Time{}
	}
}

// reset removes the file named reset before it writes the reset into the journal. A file that
// stayed would allow unlimited restarts of a host.
func (r *Rescue) reset(s *apiserver.State, d apiserver.Decision) error {
	if s.Journal.Malformed != nil {
		if err := r.Journal.Renew(); err != nil {
			return err
		}
	}
	if err := r.Journal.Answered(); err != nil {
		return err
	}
	r.Log.Info("a person has reset the rescue of the API servers", "why", d.Message)
	return r.Journal.Append(d.Write...)
}

// The intent is in the journal before the call is made, in another goroutine.
func (r *Rescue) issue(ctx context.Context, s *apiserver.State, d apiserver.Decision, now time.Time) error {
	if err := r.Journal.Append(d.Write...); err != nil {
		return err // the intent may be durable nevertheless; when the journal is read again, it counts as issued
	}
	try := *d.Try
	r.call, r.wellSince = &apiserver.RescueCall{Attempt: try.Attempt}, time.Time{}
	r.trail = trailOfRescue(d.Write[0].Rescue)
	r.trail.Log(r.Log).Info("making the call", "node", try.Host, "step", rescueStep, "why", d.Message)
	mayStill := r.mayStill(ctx, try.Attempt, now)
	go func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.CallTimeout)
		defer cancel()
		c := apiserver.RescueCall{Attempt: try.Attempt}
		withheld := false
		outcome, evidence, err := r.Hosts.Restart(ctx, try.Host, try.Attempt, func() error {
			late, err := mayStill()
			withheld = err != nil && !late // if only the intent's age forbids the call, the host loses its turn, so that others need not wait
			return err
		})
		c.Outcome, c.Evidence = outcome, evidence
		if err != nil {
			c.Why = err.Error()
		}
		if c.Outcome != remediations.CallAccepted && c.Outcome != remediations.CallRefused {
			c.Outcome = remediations.CallUnknown
		}
		c.Busy = c.Outcome == remediations.CallRefused && errors.Is(err, ErrBusy)
		c.Withheld = c.Outcome == remediations.CallRefused && withheld
		r.calls <- c
	}()
	if len(d.Write[0].Rescue.Hosts) == 1 {
		r.emitOnce("", d.Write[0].Rescue.ID, engine.Event{Reason: "RepairStarted", Of: r.trail, Action: d.Write[0].Rescue.ID, Note: fmt.Sprintf("rescue %s of the API servers by policy %s: alert %s", d.Write[0].Rescue.ID, d.Policy.Name, d.Write[0].Rescue.Cause.Alert)})
	}
	r.emitOnce(try.Host, try.Attempt, engine.Event{Warning: true, Reason: "RepairStepIssued", Action: try.Attempt, Note: d.Message, Of: r.trail})
	return nil
}

// mayStill returns the check that runs right before the restart is sent. late is true if only the
// age of the intent forbids the restart.
func (r *Rescue) mayStill(ctx context.Context, attempt string, since time.Time) func() (late bool, err error) {
	return func() (bool, error) {
		if ctx.Err() != nil {
			return false, errors.New("this Drydock replica is stopping")
		}
		j, err := r.Journal.Load()
		if err != nil {
			return false, fmt.Errorf("reading the state directory before the restart: %w", err)
		}
		if err := r.core.mayStill(j, attempt, r.Clock.Now()); err != nil {
			return false, err
		}
		return true, engine.Young(since, r.Clock.Now(), r.core.intentGood) // checked last, so that a person's pause counts before the age
	}
}

// remind writes ended rescues into the histories on the hosts' Nodes, one at a time, as soon as an
// API server accepts that.
func (r *Rescue) remind(ctx context.Context, j apiserver.RescueJournal) {
	now := r.Clock.Now()
	if r.History == nil || r.writing || j.Malformed != nil || now.Sub(r.wroteAt) < historyEvery {
		return
	}
	for _, e := range slices.Backward(j.Ended) {
		if missing := j.MissingInHistory(e); len(missing) > 0 {
			r.writing, r.wroteAt = true, now
			go r.writeHistory(ctx, missing[0], e.Of(missing[0]))
			return
		}
	}
}

func (r *Rescue) writeHistory(ctx context.Context, node string, e remediations.Entry) {
	ctx, cancel := context.WithTimeout(ctx, historyFor)
	defer cancel()
	done := apiserver.RescueInHistory{ID: e.ID, Node: node}
	if err := r.History.Write(ctx, node, e); err != nil && !errors.Is(err, engine.ErrNotFound) {
		r.Log.V(1).Info("the history of a Node cannot be written yet; Drydock tries again", "node", node, "repair", e.ID, "why", err.Error())
		done = apiserver.RescueInHistory{}
	}
	r.written <- done
}

// emit sends each Event only once.
func (r *Rescue) emit(s *apiserver.State, d apiserver.Decision) {
	rescue := s.Journal.Rescue
	if len(d.Write) > 0 && d.Write[0].Rescue != nil {
		rescue = d.Write[0].Rescue
	}
	id := ""
	if rescue != nil {
		id = rescue.ID
	}
	switch d.Verb {
	case lifecycle.VerbHold:
		r.emitOnce("", id+"/"+string(d.Reason), engine.Event{Warning: engine.HeldIsWarning(d.Reason), Reason: "RepairHeld", Action: string(d.Reason) + "-" + id, Note: string(d.Reason) + ": " + d.Message, Of: trailOfRescue(rescue)})
	case lifecycle.VerbVerify:
		if t := rescue.Hosts; len(t) > 0 {
			last := t[len(t)-1]
			r.emitOnce(last.Host, last.Attempt, engine.Event{Reason: "RepairVerifying", Action: last.Attempt, Note: d.Message, Of: trailOfRescue(rescue)})
			if last.Evidence != "" {
				r.emitOnce(last.Host, last.Attempt, engine.Event{Reason: "RepairEvidence", Action: last.Attempt, Note: "before the restart the host's kubelet reported: " + last.Evidence, Of: trailOfRescue(rescue)})
			}
		}
	case lifecycle.VerbEnd:
		e := d.Ended
		r.metrics.Over(&e.Entry)
		r.emitOnce("", e.ID, engine.Event{
			Warning: e.Outcome == remediations.OutcomeExhausted, Reason: "Repair" + string(e.Outcome), Action: e.ID, Of: engine.TrailOfEntry(&e.Entry),
			Note: fmt.Sprintf("rescue %s of the API servers by policy %s after %s: %s", e.ID, e.Policy, text.Duration(e.Ended.Sub(e.Began).Round(time.Second)), d.Message),
		})
	case lifecycle.VerbRest, lifecycle.VerbLook, lifecycle.VerbIssue, lifecycle.VerbWait, lifecycle.VerbResume, lifecycle.VerbDrop, lifecycle.VerbReset:
	}
}

func (r *Rescue) emitOnce(node, key string, e engine.Event) {
	if r.emitted.First(key+"|"+e.Reason, 256) {
		r.Events.Event(node, e)
	}
}

// publish sets the metrics of the policies for API servers.
func (r *Rescue) publish(s *apiserver.State, d apiserver.Decision) {
	rescue := s.Journal.Rescue
	for _, w := range d.Write {
		if w.Rescue != nil {
			rescue = w.Rescue
		}
	}
	if d.Verb == lifecycle.VerbDrop {
		rescue = nil
	}
	for _, p := range r.Config.Policies {
		if p.Kind != remediations.KindAPIServer {
			continue
		}
		var in remediations.Phase
		if rescue != nil && rescue.Policy == p.Name {
			in = rescue.Phase
		}
		var held remediations.Reason
		if d.Verb == lifecycle.VerbHold && (d.Policy == nil || d.Policy == p) {
			held = d.Reason
		}
		r.metrics.Show(p.Name, in, held)
	}
}

func trailOfRescue(r *apiserver.Rescue) engine.Trail {
	if r == nil {
		return engine.Trail{}
	}
	t := engine.Trail{Repair: r.ID, Policy: r.Policy, Fingerprint: r.Cause.Alert}
	if n := len(r.Hosts); n > 0 {
		t.Intent = r.Hosts[n-1].Attempt
	}
	return t
}
