package remediations

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	// rescueAgain is how soon the hosts are looked at again while a rescue waits for what its restart does.
	rescueAgain = 5 * time.Second
	// rescueIdle is how soon they are looked at again while nothing is to be done although the alert fires.
	rescueIdle = 15 * time.Second
	// rescueBlind is how long after its end a rescue still waits for a look at the hosts: it may have succeeded.
	rescueBlind = 30 * time.Second
)

// APIServerState is all that DecideAPIServer may know. No Node is in it: there may be nobody who could show one.
type APIServerState struct {
	Config  *Config
	Journal RescueJournal
	Word    *Word
	// Alerts are those about the API servers, the oldest first: Config.APIServerAlerts.
	Alerts []Alert
	// Sights are what was last seen of each control-plane host, by its name.
	Sights map[string]HostSight
	// Call is what this process knows of the call for the attempt on record; nil: it did not make it.
	Call *RescueCall
	// LookSince is when something was last changed in the state directory by a person: what was said before that is too old.
	LookSince time.Time
	// WellSince is when an API server was first seen ready without a break since; zero: none was.
	WellSince time.Time
	// NewID is a fresh identifier for a rescue that this decision may begin.
	NewID string
}

// RescueCall is one call to a host.
type RescueCall struct {
	Attempt string
	// Outcome is empty while the call is under way.
	Outcome CallOutcome
	Why     string
	// Evidence is what the host last said of the unit before it was restarted.
	Evidence string
	// Busy: refused, since a restart of the unit runs on the host already. Withheld: it was not made at all.
	Busy, Withheld bool
}

// APIServerDecision is what is to be done about the API servers, and why.
type APIServerDecision struct {
	Verb    Verb
	Reason  Reason
	Message string
	// Recheck is when to decide again though nothing changed; zero: only on a change.
	Recheck time.Time
	// AskAlerts and AskSights are what must be asked again. With Look, nothing is decided before the answer.
	AskAlerts, AskSights bool

	Policy *Policy
	// Write are the journal's next entries, durable before anything else is done.
	Write []RescueEntry
	// Try is the attempt to issue.
	Try *HostTry
	// Ended is how the rescue ended, with End.
	Ended *EndedRescue
	// Well says that an API server was found ready, all but for time: see APIServerState.WellSince.
	Well bool
}

// APIServerAlerts are the alerts about the API servers: those that the Alertmanagers have, and of the posted ones those that
// they do not have.
func (c *Config) APIServerAlerts(w *Word, posted []Alert) []Alert {
	all := map[string]Alert{}
	for _, a := range posted {
		all[a.Fingerprint] = a
	}
	if w != nil {
		for _, r := range w.Replicas {
			for fingerprint, a := range r.Alerts {
				if route, why := c.Route(a.Labels, noNode); why == MisrouteNone && route.Policy.Kind == KindAPIServer && a.RoutedHere(c) {
					found := c.NewAlert(route.Policy, a.Labels, StatusFiring, a.StartsAt, w.AskedAt)
					found.Fingerprint = fingerprint
					all[fingerprint] = found
				}
			}
		}
	}
	out := make([]Alert, 0, len(all))
	for _, a := range all {
		out = append(out, a)
	}
	slices.SortFunc(out, func(a, b Alert) int {
		if c := a.StartsAt.Compare(b.StartsAt); c != 0 {
			return c
		}
		return strings.Compare(a.Fingerprint, b.Fingerprint)
	})
	return out
}

// DecideAPIServer says what is to be done about the API servers, none of which may be there to be asked. It is pure, as
// Decide is. Its guards are few: the others speak of Nodes, which nobody can read.
func DecideAPIServer(s *APIServerState, now time.Time) APIServerDecision {
	r := s.Journal.Rescue
	switch {
	case s.Journal.Reset && (s.Journal.Malformed != nil || r == nil || r.Phase == Exhausted):
		d := APIServerDecision{Verb: Reset, Message: "what was counted against the control plane's hosts is forgotten"}
		if s.Journal.Malformed != nil {
			d.Message = "the journal that could not be read was set aside, and another begun"
		} else {
			d.Write = []RescueEntry{{Reset: true}}
		}
		return d
	case s.Journal.Malformed != nil:
		return APIServerDecision{Verb: Keep, Reason: RecordMalformed, Message: fmt.Sprintf("%v; no API server is restarted until somebody makes a file named reset in the state directory, which sets the journal aside", s.Journal.Malformed)}
	case r == nil || (r.Phase == Pending && len(r.Hosts) == 0):
		return s.start(now)
	case r.Phase == Acting:
		return s.settle(now)
	case r.Phase == Exhausted:
		return s.rest(now)
	}
	return s.goOn(now)
}

// start looks for an alert that no guard holds.
func (s *APIServerState) start(now time.Time) APIServerDecision {
	r := s.Journal.Rescue
	if r != nil && !now.Before(r.Deadline) {
		return s.end(Cancelled, fmt.Sprintf("held for %s: %s", pendingFor, r.Hold.words()), now)
	}
	alerts := slices.Clone(s.Alerts)
	if r != nil && alertOf(s.Alerts, r.Cause) == nil { // those who would know it may not answer
		alerts = append(alerts, Alert{Fingerprint: r.Cause.Alert, Policy: r.Policy, Status: StatusFiring})
	}
	var held *APIServerDecision
	for i := range alerts {
		a := &alerts[i]
		p := s.Config.Policy(a.Policy)
		if p == nil || p.Mode == ModeOff || p.Kind != KindAPIServer || !s.Config.serves(p) {
			continue
		}
		if s.stale(now) {
			return s.look(p, "asking Alertmanager about "+cmp.Or(a.Name, "alert "+a.Fingerprint))
		}
		c := s.candidate(p, a, now)
		if c.verdict.gone && (a.Status == StatusResolved || now.Sub(a.ReceivedAt) >= unconfirmedFor) {
			continue
		}
		pending := r
		if r == nil || r.Cause.Alert != a.Fingerprint || r.Policy != p.Name {
			pending = &Rescue{
				V: recordVersion, ID: s.NewID, Policy: p.Name, Cause: Cause{Alert: a.Fingerprint}, Phase: Pending,
				Began: at(now), Since: at(now), Deadline: at(now.Add(pendingFor)),
			}
		}
		if d := s.act(c, pending); d.Verb != Keep {
			return d
		} else if held == nil {
			held = &d
		}
	}
	switch {
	case held != nil:
		return *held
	case r != nil:
		return s.drop("the alert is over before anything was done")
	}
	return APIServerDecision{Verb: Rest}
}

func (s *APIServerState) candidate(p *Policy, a *Alert, now time.Time) *rescuer {
	return &rescuer{APIServerState: s, now: now, policy: p, alert: a, verdict: s.Word.about(a.Fingerprint, s.Config, "")}
}

// goOn waits for what the last restart does, and then takes the next host: one API server that works ends it.
func (s *APIServerState) goOn(now time.Time) APIServerDecision {
	r := s.Journal.Rescue
	p := s.Config.Policy(r.Policy)
	if p == nil || p.Mode == ModeOff || p.Kind != KindAPIServer || !s.Config.serves(p) {
		return s.end(Cancelled, fmt.Sprintf("policy %s is no longer configured, or off", r.Policy), now)
	}
	seen := !s.unseen(now)
	if !seen && now.Before(r.Over.Add(rescueBlind)) {
		return APIServerDecision{Verb: Look, AskSights: true, Policy: p, Message: "looking at the control plane's hosts"}
	}
	if host := s.ready(); seen && host != "" {
		return s.well(p, host, now)
	}
	switch {
	case !now.Before(r.Over) && r.heldBack():
		return s.end(Cancelled, fmt.Sprintf("its time, until %s, was over while it was held: %s", r.Over.Format(time.RFC3339), r.Hold.words()), now)
	case !now.Before(r.Over):
		why := fmt.Sprintf("its time was over at %s, and no API server answers ready", r.Over.Format(time.RFC3339))
		if !seen {
			why += ", as far as anybody could look"
		}
		return s.exhaust(p, why, now)
	case r.Phase == Verifying && now.Before(r.Deadline):
		return s.again(APIServerDecision{Verb: Wait, Policy: p, Recheck: r.Deadline, Message: "no API server answers ready yet"}, now)
	case s.stale(now):
		return s.look(p, "asking Alertmanager before the next host")
	}
	pending := r.clone()
	if r.Phase != Pending {
		pending.Phase, pending.Since, pending.Deadline = Pending, at(now), r.Over
	}
	a := alertOf(s.Alerts, r.Cause)
	if a == nil {
		a = &Alert{Fingerprint: r.Cause.Alert, Policy: r.Policy, Status: StatusFiring}
	}
	c := s.candidate(p, a, now)
	c.acted = true
	return s.act(c, pending)
}

// heldBack says that it was not the hosts that kept the rescue from going on.
func (r *Rescue) heldBack() bool {
	return r.Phase == Pending && r.Hold != nil && r.Hold.Reason != APIServerUnknown && r.Hold.Reason != RepairsSpent
}

// act issues a restart, or holds it. pending is the rescue as it would be while held.
func (s *APIServerState) act(c *rescuer, pending *Rescue) APIServerDecision {
	c.own = pending.ID
	if s.unseen(c.now) {
		return APIServerDecision{Verb: Look, AskSights: true, Policy: c.policy, Message: "looking at the control plane's hosts"}
	}
	if host := s.ready(); host != "" { // only before anything was done: goOn asks first
		return s.needless(c.policy, host, c.now)
	}
	reason, f := c.hold()
	if f == nil {
		host, unknown, left := s.next(c, pending)
		switch {
		case host != "":
			c.host, c.unknown = host, unknown
			reason, f = c.hold()
		case left:
			reason, f = APIServerUnknown, because("nothing can be said of the API servers that are left, and no data is no fault: %s", unknown)
		default:
			return s.exhaust(c.policy, "no host is left, and no API server answers ready", c.now)
		}
	}
	if f == nil {
		return s.issue(c, pending)
	}
	d := APIServerDecision{Verb: Keep, Reason: reason, Message: f.message, Policy: c.policy, Recheck: c.now.Add(rescueIdle)}
	if f.until.After(c.now) && f.until.Before(d.Recheck) {
		d.Recheck = f.until
	}
	if was := s.Journal.Rescue; was == nil || was.ID != pending.ID || was.Phase != pending.Phase || was.Hold == nil || was.Hold.Reason != reason {
		r := pending.clone()
		r.Hold = newHold(reason, f, c.now)
		d.Write = []RescueEntry{{Rescue: r}}
	}
	return d
}

// next is the first host that surely fails and was not tried yet, as the configuration orders them; of those one that was
// not restarted too often, if there is one. unknown says of which untried ones nothing is known, left whether there are any.
func (s *APIServerState) next(c *rescuer, r *Rescue) (host, unknown string, left bool) {
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
		if count, _ := s.begun(h, r.ID, c.now); host == "" || (count < s.Config.Limits.RepairsPerNode && c.spent(host)) {
			host = h
		}
	}
	return host, clip(strings.Join(passed, "; "), 300), left
}

func (s *APIServerState) begun(host, except string, now time.Time) (int, time.Time) {
	return s.Journal.begun(host, except, now, s.Config.Limits.RepairsWindow)
}

func (s *APIServerState) issue(c *rescuer, pending *Rescue) APIServerDecision {
	r := pending.clone()
	r.Phase, r.Hold = Acting, nil
	r.Since, r.Deadline = at(c.now), at(c.now.Add(actingFor))
	if r.Over.IsZero() {
		r.Over = at(c.now.Add(rescueFor(c.policy)))
	}
	r.Issued++
	try := HostTry{Host: c.host, Attempt: fmt.Sprintf("%s-%d", r.ID, r.Issued), At: at(c.now)}
	r.Hosts = append(r.Hosts, try)
	d := APIServerDecision{Verb: Issue, Policy: c.policy, Try: &try, Write: []RescueEntry{{Rescue: r}}}
	d.Message = fmt.Sprintf("%s %s, whose API server fails (%s), by policy %s", restartKubelet.Verb, c.host, s.Sights[c.host].Why, c.policy.Name)
	if c.unknown != "" {
		d.Message += "; nothing is known of " + c.unknown
	}
	return d
}

func rescueFor(p *Policy) time.Duration {
	if len(p.Plan) > 0 && p.Plan[0].Timeout > 0 {
		return p.Plan[0].Timeout
	}
	return RescueFor
}
