package engine

import (
	"github.com/go-logr/logr"

	"drydock.dev/drydock/remediations"
)

// Trail identifies the repair that a log line is about. All log lines use the same keys. With the
// fingerprint in the receiver's log line, they show the repair from the alert's arrival to the
// proof.
type Trail struct{ Repair, Policy, Fingerprint, Intent, Pod, Location, Target string }

func trailOf(r *remediations.Record) Trail {
	if r == nil {
		return Trail{}
	}
	t := Trail{Repair: r.ID, Policy: r.Policy, Fingerprint: r.Cause.Alert, Location: r.Location, Target: r.Target}
	if r.Intent != nil {
		t.Intent = r.Intent.ID
	}
	if r.Pod != nil {
		t.Pod = r.Pod.String()
	}
	return t
}

// TrailOfEntry returns the trail of a repair that has ended.
func TrailOfEntry(e *remediations.Entry) Trail {
	return Trail{Repair: e.ID, Policy: e.Policy, Fingerprint: e.Cause, Pod: e.Pod, Location: e.Location, Target: e.Target}
}

// Log returns a logger that adds the trail to each line.
func (t Trail) Log(log logr.Logger) logr.Logger {
	if t.Repair != "" {
		log = log.WithValues("repair", t.Repair)
	}
	if t.Policy != "" {
		log = log.WithValues("policy", t.Policy)
	}
	if t.Fingerprint != "" {
		log = log.WithValues("fingerprint", t.Fingerprint)
	}
	if t.Intent != "" {
		log = log.WithValues("intent", t.Intent)
	}
	if t.Pod != "" {
		log = log.WithValues("pod", t.Pod)
	}
	if t.Location != "" {
		log = log.WithValues("location", t.Location)
	}
	if t.Target != "" {
		log = log.WithValues("target", t.Target)
	}
	return log
}

// Logged returns a Recorder that logs each Event before it sends it. So the line is there even if
// the API server is not reachable.
func Logged(to Recorder, log logr.Logger) Recorder { return loggedEvents{to, log} }

type loggedEvents struct {
	Recorder
	to logr.Logger
}

// Event logs the Event and sends it.
func (l loggedEvents) Event(regarding string, e Event) {
	log := e.Of.Log(l.to)
	if regarding != "" {
		log = log.WithValues("node", regarding)
	}
	if o := e.About; o != nil {
		log = log.WithValues("object", o.Kind+" "+o.Namespace+"/"+o.Name)
	}
	log.Info(e.Note, "reason", e.Reason)
	l.Recorder.Event(regarding, e)
}
