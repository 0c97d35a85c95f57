package alerts

import (
	"slices"
	"time"

	"drydock.dev/drydock/remediations"
)

// Replica is one replica's answer. Several callers may share it, so it must not be changed.
type Replica struct {
	// Without credentials. The host is the replica's address, or the name if it has no address or a
	// proxy resolves it.
	URL string
	// Why the replica gave no answer: its name has no address, it did not answer in time, or its
	// answer is incomplete. The other fields except URL then mean nothing: no alert counts as
	// absent.
	Err error
	// A silenced or inhibited Watchdog counts, too, because it proves the same.
	Watchdog bool
	// When the replica last received the Watchdog, by its own clock. If Prometheus has stopped, the
	// replica still has its Watchdog for minutes, but does not receive it again.
	WatchdogAt time.Time
	// The active alerts that match blindWhen, joined by commas: Prometheus does not see the nodes.
	// The shipped alert DrydockSourceDown sets SourceDown instead, because it is about one
	// Prometheus only: another may see all nodes.
	BlindBy    string
	SourceDown bool
	// The alert that fires while a Prometheus sees all nodes. Nil if the replica does not have it.
	SourceSeen *Alert
	// The alerts that a policy might take, by fingerprint.
	Alerts map[string]Alert
	// The alerts in InhibitedBy that the replica returned, by fingerprint, with their labels
	// alertname and Config.NodeLabels. A policy need not take these alerts.
	Inhibitors map[string]map[string]string
	// SelfTest are the alerts of the self-test, which always fire and are not in Alerts. The others
	// are set only if the replica routes none of them to the configured receiver. NoReceiver means
	// that it has no such receiver. Akin are the receivers whose names end in a slash and the
	// configured name.
	SelfTest   []Alert
	NoReceiver bool
	Akin       []string
	// Details of the silences in SilencedBy, by id. An id in SilencedBy silences its alert even
	// without details here.
	Silences map[string]Silence
}

// Silence is a silence's author, comment and end.
type Silence struct {
	Author, Comment string
	EndsAt          time.Time
}

// Alert is one alert as a replica has it. Alertmanager reports no alert whose end has passed.
type Alert struct {
	Labels map[string]string
	// According to Prometheus.
	StartsAt time.Time
	// EndsAt is when the alert counts as resolved unless it is sent again. UpdatedAt is when it was
	// last sent, or zero if that is unknown.
	EndsAt, UpdatedAt time.Time
	// The alert is neither silenced nor inhibited. A time interval that mutes it does not change
	// this.
	Active bool
	// The ids of silences, and the fingerprints of the inhibiting alerts.
	SilencedBy, InhibitedBy []string
	// The time intervals that mute the alert for Drydock's receiver, as of the last notification of
	// the alert's group. So their start or end may show up to one group_interval later, and in a
	// new group only after its group_wait. Empty if the receiver is not configured.
	MutedBy []string
	// The full names of the receivers that get the alert. Several alerts may share one list.
	Receivers []string
}

// RoutedHere reports whether Alertmanager sends the alert to Drydock's receiver. The full name must
// be equal: the Prometheus operator puts namespace/name/ before a receiver's name, so another
// tenant's receiver may end in the same name.
func (a Alert) RoutedHere(c *remediations.Config) bool {
	return c.Receiver == "" || slices.Contains(a.Receivers, c.Receiver)
}

// silent means that Prometheus has not sent the alert for two resend intervals. With each sending,
// Prometheus sets the alert's end four intervals later. So Alertmanager shows an alert as active
// for minutes after Prometheus has stopped.
func (a Alert) silent(now time.Time) bool {
	life := a.EndsAt.Sub(a.UpdatedAt)
	return !a.EndsAt.IsZero() && !a.UpdatedAt.IsZero() && life > 0 && now.Sub(a.UpdatedAt) > life/2
}
