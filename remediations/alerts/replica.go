package alerts

import (
	"slices"
	"time"

	"drydock.dev/drydock/remediations"
)

// Replica is one replica's answer. Several callers may share one: read it, do not write to it.
type Replica struct {
	// URL is the URL of the replica, without credentials, with the address in place of the host
	// name. It keeps the name if the name has no address, or if a proxy resolves the name.
	URL string
	// Err is why the replica gave no answer: its name has no address, it did not answer in time, or
	// its answer is incomplete. The other fields are empty then and mean nothing: no alert counts
	// as absent.
	Err error
	// Watchdog reports that the replica has the Watchdog alert. A silenced or inhibited one counts,
	// too: it proves the same.
	Watchdog bool
	// WatchdogAt is when the replica last received the Watchdog, by its own clock. The Watchdog of
	// a dead source stays for minutes, but is not sent again.
	WatchdogAt time.Time
	// BlindBy names the active alerts that match blindWhen; empty: none. SourceDown reports that
	// the shipped alert DrydockSourceDown is one of them. BlindBy does not name it: one Prometheus
	// that does not see the nodes proves nothing while another one sees them all.
	BlindBy    string
	SourceDown bool
	// SourceSeen is the alert that fires while a Prometheus sees all nodes, with the times when it
	// was last sent and when it ends. Nil: the replica has none.
	SourceSeen *Alert
	// Alerts are the alerts that a policy might take, by fingerprint.
	Alerts map[string]Alert
	// Inhibitors are the alerts in InhibitedBy, by fingerprint, if the replica showed them; a
	// policy need not take them. They have the labels alertname and Config.NodeLabels.
	Inhibitors map[string]map[string]string
	// SelfTest are the alerts that always fire, as this replica has them. They are not in Alerts.
	// If none of them is routed to the configured receiver, NoReceiver reports that the replica has
	// no receiver of that name. Akin are then the receivers whose names end in it, behind a slash.
	SelfTest   []Alert
	NoReceiver bool
	Akin       []string
	// Silences are details of the silences in SilencedBy, by id. Some may be missing: an id in
	// SilencedBy silences the alert even without details here.
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
	// StartsAt is when the alert began to fire, according to Prometheus.
	StartsAt time.Time
	// EndsAt is when the alert counts as resolved unless it is sent again. UpdatedAt is when it was
	// last sent; zero: unknown.
	EndsAt, UpdatedAt time.Time
	// Active is Alertmanager's state "active": neither silenced nor inhibited, and processed. A
	// time interval that mutes the alert does not change its state.
	Active bool
	// SilencedBy are the ids of the silences that cover the alert. InhibitedBy are the fingerprints
	// of the alerts that inhibit it.
	SilencedBy, InhibitedBy []string
	// MutedBy are the time intervals that mute the alert for Drydock's receiver. They are as old as
	// the last notification of the alert's group: an interval that begins or ends shows one
	// group_interval later, and a new group shows none until its group_wait has passed. Empty if
	// the receiver is not configured.
	MutedBy []string
	// Receivers are the receivers that the replica's routes lead the alert to, by their whole
	// names. Alerts may share one list.
	Receivers []string
}

// RoutedHere reports whether Alertmanager sends the alert to Drydock's receiver. Only the whole
// name counts: the Prometheus operator puts namespace/name/ before it, and a tenant's receiver may
// end in the same name.
func (a Alert) RoutedHere(c *remediations.Config) bool {
	return c.Receiver == "" || slices.Contains(a.Receivers, c.Receiver)
}

// silent reports whether the sender of the alert has missed two of its resend times. Prometheus
// gives an alert an end four resend times later with each sending, so an alert outlives its dead
// source by minutes.
func (a Alert) silent(now time.Time) bool {
	life := a.EndsAt.Sub(a.UpdatedAt)
	return !a.EndsAt.IsZero() && !a.UpdatedAt.IsZero() && life > 0 && now.Sub(a.UpdatedAt) > life/2
}
