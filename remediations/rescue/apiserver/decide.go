package apiserver

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/alerts"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/routing"
)

// restartKubelet is the only remediation for API servers.
var restartKubelet = remediations.Shipped()["restart-kubelet"]

const (
	// The time between two observations of the hosts while a rescue waits for the effect of a
	// restart.
	rescueAgain = 5 * time.Second
	// The same while the alert fires and there is nothing to do.
	rescueIdle = 15 * time.Second
	// How long a rescue may last after Rescue.Over because the hosts could not be observed: without
	// an observation it is unknown whether the rescue has succeeded.
	rescueBlind = 30 * time.Second
)

// State is the input of Decide. It has no Nodes, because only an API server has them.
type State struct {
	Config  *remediations.Config
	Journal RescueJournal
	// Nil before the first poll of Alertmanager.
	Snapshot *alerts.Snapshot
	// The alerts about the API servers, oldest first, from the function Alerts.
	Alerts []remediations.Alert
	// By the host's name.
	Sights map[string]HostSight
	// The call for the last attempt in the journal. Nil if this process did not make it.
	Call *RescueCall
	// When a person last changed a file in the state directory. Earlier observations do not count.
	LookSince time.Time
	// Since when every decision has found an API server ready. Zero if the last one found none.
	WellSince time.Time
	NewID     string
	// Nil means all guards. Only tests set it.
	Guards []lifecycle.Guard
}

// RescueCall is one call that restarts the kubelet of a host.
type RescueCall struct {
	Attempt string
	// Empty while the call is in progress.
	Outcome remediations.CallOutcome
	Why     string
	// What the host last reported about the kubelet's systemd unit before the restart.
	Evidence string
	// Busy means that the host refused the call, because a restart of the unit already runs there.
	// Withheld means that the last check forbade the call for a reason other than the intent's age.
	Busy, Withheld bool
}

// Decision is what to do about the API servers, and why.
type Decision struct {
	Verb    lifecycle.Verb
	Reason  remediations.Reason
	Message string
	// When to decide again even if nothing has changed. Zero means only after a change.
	Recheck time.Time
	// AskAlerts means that Alertmanager must be polled again, AskSights that the hosts must be
	// observed again. With VerbLook, the next decision waits for the answers.
	AskAlerts, AskSights bool

	Policy *remediations.Policy
	// The next entries of the journal. They must be durable before anything else is done.
	Write []RescueEntry
	// The restart to make now, if Verb is VerbIssue.
	Try *HostTry
	// How the rescue ended, if Verb is VerbEnd.
	Ended *EndedRescue
	// An API server is ready now, even if only for a moment (see State.WellSince).
	Well bool
}

// Alerts returns the alerts about the API servers, oldest first: those of the Alertmanagers'
// answers w, and those in posted that no Alertmanager in w has. received is when each was first
// received, by fingerprint; no Node can store it here.
func Alerts(c *remediations.Config, w *alerts.Snapshot, posted []remediations.Alert, received map[string]time.Time) []remediations.Alert {
	all := map[string]remediations.Alert{}
	for _, a := range posted {
		all[a.Fingerprint] = a
	}
	if w != nil {
		for _, r := range w.Replicas {
			for fingerprint, a := range r.Alerts {
				if route, why := routing.Of(c, a.Labels, noNode); why == remediations.MisrouteNone && route.Policy.Kind == remediations.KindAPIServer && a.RoutedHere(c) {
					found := c.NewAlert(route.Policy, a.Labels, remediations.StatusFiring, a.StartsAt, w.AskedAt)
					found.Fingerprint = fingerprint
					if first, known := received[fingerprint]; known {
						found.ReceivedAt = first
					}
					all[fingerprint] = found
				}
			}
		}
	}
	out := make([]remediations.Alert, 0, len(all))
	for _, a := range all {
		out = append(out, a)
	}
	slices.SortFunc(out, func(a, b remediations.Alert) int {
		if c := a.StartsAt.Compare(b.StartsAt); c != 0 {
			return c
		}
		return strings.Compare(a.Fingerprint, b.Fingerprint)
	})
	return out
}

// Decide returns what to do about the API servers, also while none answers. It is pure. It checks
// only a few guards, because the others need Nodes, which cannot be read then.
func Decide(s *State, now time.Time) Decision {
	r := s.Journal.Rescue
	switch {
	case s.Journal.Reset && (s.Journal.Malformed != nil || r == nil || r.Phase == remediations.PhaseExhausted):
		d := Decision{Verb: lifecycle.VerbReset, Message: "Drydock has reset the number of restarts of each control-plane host"}
		if s.Journal.Malformed != nil {
			d.Message = "Drydock has renamed the unreadable journal and started a new one"
		} else {
			d.Write = []RescueEntry{{Reset: true}}
		}
		return d
	case s.Journal.Malformed != nil:
		return Decision{Verb: lifecycle.VerbHold, Reason: remediations.ReasonRecordMalformed, Message: fmt.Sprintf("%v; Drydock restarts no API server until a person creates a file named reset in the state directory; Drydock then renames this journal and starts a new one", s.Journal.Malformed)}
	case r == nil || (r.Phase == remediations.PhasePending && len(r.Hosts) == 0):
		return s.start(now)
	case r.Phase == remediations.PhaseActing:
		return s.settle(now)
	case r.Phase == remediations.PhaseExhausted:
		return s.rest(now)
	}
	return s.goOn(now)
}

func (s *State) serves(p *remediations.Policy) bool {
	return p != nil && p.Mode != remediations.ModeOff && p.Kind == remediations.KindAPIServer && s.Config.Serves(p)
}

// The alert is taken from the journal, because the Alertmanagers may not answer.
func (r *Rescue) alert() remediations.Alert {
	return remediations.Alert{Fingerprint: r.Cause.Alert, Policy: r.Policy, Status: remediations.StatusFiring}
}

// start decides before the first restart. It tries one alert after the other, until no guard holds
// the restart.
func (s *State) start(now time.Time) Decision {
	r := s.Journal.Rescue
	if r.observing() {
		if d, over := s.observedOver(now); over {
			return d
		}
	}
	if r != nil && !now.Before(r.Deadline) {
		return s.end(remediations.OutcomeCancelled, fmt.Sprintf("held for %s: %s", text.Duration(remediations.PendingFor), r.Hold.Words()), now)
	}
	alerts := slices.Clone(s.Alerts)
	if r != nil && remediations.AlertOf(s.Alerts, r.Cause) == nil { // the Alertmanagers that have the alert may not answer
		alerts = append(alerts, r.alert())
	}
	var held *Decision
	for i := range alerts {
		a := &alerts[i]
		p := s.Config.Policy(a.Policy)
		if !s.serves(p) {
			continue
		}
		if s.stale(now) {
			return s.look(p, "querying Alertmanager about "+cmp.Or(a.Name, "alert "+a.Fingerprint))
		}
		c := s.candidate(p, a, false, now)
		if c.over(a) {
			continue
		}
		pending := r
		if r == nil || r.Cause.Alert != a.Fingerprint || r.Policy != p.Name {
			pending = &Rescue{
				V: remediations.RecordVersion, ID: s.NewID, Policy: p.Name, Cause: remediations.Cause{Alert: a.Fingerprint}, Phase: remediations.PhasePending,
				Began: remediations.Instant(now), Since: remediations.Instant(now), Deadline: remediations.Instant(now.Add(remediations.PendingFor)),
			}
		}
		if d := s.givesWay(s.act(c, pending), now); d.Verb != lifecycle.VerbHold {
			return d
		} else if held == nil {
			held = &d
		}
	}
	switch {
	case held != nil:
		return *held
	case r != nil:
		return s.drop("the alert ended before Drydock did anything")
	}
	return Decision{Verb: lifecycle.VerbRest}
}

// goOn decides after the first restart: it waits for the effect, and then restarts the kubelet of
// the next host. One working API server ends the rescue.
func (s *State) goOn(now time.Time) Decision {
	r := s.Journal.Rescue
	p := s.Config.Policy(r.Policy)
	if !s.serves(p) {
		return s.end(remediations.OutcomeCancelled, fmt.Sprintf("policy %s is no longer configured, or off", r.Policy), now)
	}
	seen := !s.unseen(now)
	if !seen && now.Before(r.Over.Add(rescueBlind)) {
		return Decision{Verb: lifecycle.VerbLook, AskSights: true, Policy: p, Message: "observing the control plane's hosts"}
	}
	if host := s.ready(); seen && host != "" {
		return s.well(p, host, now)
	}
	switch {
	case !now.Before(r.Over) && r.heldBack():
		return s.end(remediations.OutcomeCancelled, fmt.Sprintf("the rescue's time ended at %s while the rescue was held: %s", r.Over.Format(time.RFC3339), r.Hold.Words()), now)
	case !now.Before(r.Over):
		why := fmt.Sprintf("the rescue's time ended at %s, and no API server answers ready", r.Over.Format(time.RFC3339))
		if !seen {
			why += ", but Drydock could not observe all hosts"
		}
		return s.exhaust(p, why, now)
	case r.Phase == remediations.PhaseVerifying && now.Before(r.Deadline):
		return s.again(Decision{Verb: lifecycle.VerbWait, Policy: p, Recheck: r.Deadline, Message: "no API server answers ready yet"}, now)
	case s.stale(now):
		return s.look(p, "querying Alertmanager before the next host")
	}
	pending := r.clone()
	if r.Phase != remediations.PhasePending {
		pending.Phase, pending.Since, pending.Deadline = remediations.PhasePending, remediations.Instant(now), r.Over
	}
	a := remediations.AlertOf(s.Alerts, r.Cause)
	if a == nil {
		own := r.alert()
		a = &own
	}
	return s.act(s.candidate(p, a, true, now), pending)
}

// heldBack reports whether the rescue is held for a reason other than the state of the hosts.
func (r *Rescue) heldBack() bool {
	return r.Phase == remediations.PhasePending && r.Hold != nil && r.Hold.Reason != remediations.ReasonAPIServerUnknown && r.Hold.Reason != remediations.ReasonRepairsSpent
}

// pending is the record of the rescue while it is held.
func (s *State) act(c *rescuer, pending *Rescue) Decision {
	c.Own = pending.ID
	if s.unseen(c.Now) {
		return Decision{Verb: lifecycle.VerbLook, AskSights: true, Policy: c.Policy, Message: "observing the control plane's hosts"}
	}
	if host := s.ready(); host != "" { // only before the first restart: goOn has checked this already
		return s.needless(c.Policy, host, c.Now)
	}
	reason, f := c.held()
	if f == nil {
		host, unknown, left := s.next(c, pending)
		switch {
		case host != "":
			c.choose(host, unknown)
			reason, f = c.held()
		case left:
			reason, f = remediations.ReasonAPIServerUnknown, lifecycle.Because("the state of the remaining API servers is unknown, and missing data is not a fault: %s", unknown)
		default:
			return s.exhaust(c.Policy, "no host is left, and no API server answers ready", c.Now)
		}
	}
	if f == nil {
		return s.issue(c, pending)
	}
	d := Decision{Verb: lifecycle.VerbHold, Reason: reason, Message: f.Message, Policy: c.Policy, Recheck: c.Now.Add(rescueIdle)}
	if f.Until.After(c.Now) && f.Until.Before(d.Recheck) {
		d.Recheck = f.Until
	}
	if was := s.Journal.Rescue; was == nil || was.ID != pending.ID || was.Phase != pending.Phase || was.Hold == nil || was.Hold.Reason != reason {
		r := pending.clone()
		r.Hold = lifecycle.NewHold(reason, f, c.Now)
		if reason == remediations.ReasonObserving {
			r.observe(c.host, c.Now)
		}
		d.Write = []RescueEntry{{Rescue: r}}
	}
	return d
}

// next returns the first failing host, in the configuration's order, that this rescue has not
// restarted. A host below limits.repairsPerNode comes first. unknown describes, for messages, hosts
// in other states, and left is true if there are any.
func (s *State) next(c *rescuer, r *Rescue) (host, unknown string, left bool) {
	var passed []string
	for _, h := range s.Config.ControlPlaneHosts {
		if r.tried(h) || len(r.Hosts) == MaxControlPlaneHosts {
			continue
		}
		if sight := s.Sights[h]; sight.State != HostFailing {
			left = true
			passed = append(passed, h+": "+sight.Why)
			continue
		}
		if host == "" || (!c.spent(h) && c.spent(host)) {
			host = h
		}
	}
	return host, text.Line(strings.Join(passed, "; "), 300), left
}

func (s *State) issue(c *rescuer, pending *Rescue) Decision {
	r := pending.clone()
	r.Phase, r.Hold, r.Observed = remediations.PhaseActing, nil, nil
	r.Since, r.Deadline = remediations.Instant(c.Now), remediations.Instant(c.Now.Add(remediations.ActingFor))
	if r.Over.IsZero() {
		r.Over = remediations.Instant(c.Now.Add(rescueFor(c.Policy)))
	}
	r.Issued++
	try := HostTry{Host: c.host, Attempt: fmt.Sprintf("%s-%d", r.ID, r.Issued), At: remediations.Instant(c.Now)}
	r.Hosts = append(r.Hosts, try)
	d := Decision{Verb: lifecycle.VerbIssue, Policy: c.Policy, Try: &try, Write: []RescueEntry{{Rescue: r}}}
	d.Message = fmt.Sprintf("%s %s, whose API server fails (%s), by policy %s", restartKubelet.Verb, c.host, s.Sights[c.host].Why, c.Policy.Name)
	if c.unknown != "" {
		d.Message += "; the state of other hosts is unknown: " + c.unknown
	}
	return d
}

func rescueFor(p *remediations.Policy) time.Duration {
	if len(p.Plan) > 0 && p.Plan[0].Timeout > 0 {
		return p.Plan[0].Timeout
	}
	return RescueFor
}
