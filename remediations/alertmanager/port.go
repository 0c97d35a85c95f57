package alertmanager

import (
	"context"
	"slices"
	"strings"
	"time"

	"drydock.dev/drydock/remediations/alerts"
)

// sourceDown is the shipped alert that Options.SourceSeen answers.
const sourceDown = "DrydockSourceDown"

// Look asks every replica, and gives what each said in the core's terms. It is engine.AlertSource's.
func (c *Client) Look(ctx context.Context) []alerts.Replica {
	snapshot := c.Poll(ctx)
	words := make([]alerts.Replica, 0, len(snapshot.Replicas))
	for _, r := range snapshot.Replicas {
		words = append(words, r.word())
	}
	return words
}

func (r *Replica) word() alerts.Replica {
	w := alerts.Replica{
		URL: r.URL, Err: r.Err, Watchdog: r.Watchdog, WatchdogAt: r.WatchdogAt, SourceDown: slices.Contains(r.BlindBy, sourceDown), Inhibitors: r.Inhibitors,
		BlindBy:    strings.Join(slices.DeleteFunc(slices.Clone(r.BlindBy), func(name string) bool { return name == sourceDown }), ", "),
		NoReceiver: r.NoReceiver, Akin: r.Akin,
		Alerts: make(map[string]alerts.Alert, len(r.Alerts)), Silences: make(map[string]alerts.Silence, len(r.Silences)),
	}
	if !r.SourceSeenAt.IsZero() {
		w.SourceSeen = &alerts.Alert{UpdatedAt: r.SourceSeenAt, EndsAt: r.SourceSeenUntil}
	}
	for id, s := range r.Silences {
		w.Silences[id] = alerts.Silence{Author: s.Author, Comment: s.Comment, EndsAt: s.EndsAt}
	}
	for fingerprint, a := range r.Alerts {
		w.Alerts[fingerprint] = alerts.Alert{
			Labels: a.Labels, StartsAt: a.StartsAt, EndsAt: a.EndsAt, UpdatedAt: a.UpdatedAt, Active: a.State == StateActive,
			SilencedBy: a.SilencedBy, InhibitedBy: a.InhibitedBy, MutedBy: a.MutedBy, Receivers: a.Receivers,
		}
	}
	for _, s := range r.SelfTest {
		w.SelfTest = append(w.SelfTest, s.word())
	}
	return w
}

// word says who keeps the alert from Drydock's receiver, if anybody does.
func (s *SelfTest) word() alerts.SelfTestAlert {
	a := alerts.SelfTestAlert{Receivers: s.Receivers}
	switch {
	case len(s.SilencedBy) > 0:
		a.Quiet = "silenced by " + strings.Join(s.SilencedBy, ", ")
	case len(s.InhibitedBy) > 0:
		a.Quiet = "inhibited by the alert " + strings.Join(s.InhibitedBy, ", ")
	case len(s.MutedBy) > 0:
		a.Quiet = "muted by the time interval " + strings.Join(s.MutedBy, ", ")
	}
	return a
}

// Repairs makes Drydock's own silences. It is an engine.Silencer.
type Repairs struct{ *Client }

// Silence silences the alerts with these labels from now until then.
func (r Repairs) Silence(ctx context.Context, labels map[string]string, until time.Time, comment string) (id string, err error) {
	return r.Client.Silence(ctx, NewSilence{Matchers: labels, StartsAt: time.Now(), EndsAt: until, Author: "drydock", Comment: comment})
}
