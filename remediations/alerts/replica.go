package alerts

import (
	"slices"
	"time"

	"drydock.dev/drydock/remediations"
)

// Replica is one replica's answer. Several callers may share it, so it must not be changed.
type Replica struct {
	// URL is the URL of the replica, without credentials. Its host is the replica's address. Its
	// host is the name instead if the name has no address, or if a proxy resolves the name.
	URL string
	// Err is why the replica gave no answer: its name has no address, it did not answer in time, or
	// its answer is incomplete. If Err is set, the other fields except URL are empty and mean nothing:
	// no alert counts as absent.
	Err error
	// Watchdog reports whether the replica has the Watchdog alert. A silenced or inhibited Watchdog
	// counts, too, because it proves the same.
	Watchdog bool
	// WatchdogAt is when the replica last received the Watchdog, by its own clock. If Prometheus has
	// stopped, the replica still has its Watchdog for minutes, but does not receive it again.
	WatchdogAt time.Time
	// BlindBy has the names of the active alerts that match blindWhen, joined by commas. It is
	// empty if there are none. Such an alert shows that Prometheus does not see the nodes. The
	// shipped alert DrydockSourceDown is not in BlindBy. It sets SourceDown, because it is about
	// one Prometheus only: another Prometheus may see all nodes.
	BlindBy    string
	SourceDown bool
	// SourceSeen is the alert that fires while a Prometheus sees all nodes, with the time when it was
	// last sent and the time when it ends. It is nil if the replica does not have the alert.
	SourceSeen *Alert
	// Alerts are the alerts that a policy might take, by fingerprint.
	Alerts map[string]Alert
	// Inhibitors are the alerts in InhibitedBy that the replica returned. The key is the
	// fingerprint. The value has the alert's labels alertname and Config.NodeLabels. A policy need
	// not take these alerts.
	Inhibitors map[string]map[string]string
	// SelfTest are this replica's alerts of the self-test, which always fire. They are not in
	// Alerts. NoReceiver and Akin are only set if the replica routes no SelfTest alert to the
	// configured receiver. NoReceiver means that the replica has no receiver with the configured
	// name. Akin are the receivers whose names end in a slash and the configured name.
	SelfTest   []Alert
	NoReceiver bool
	Akin       []string
	// Silences are details of the silences in SilencedBy, by id. Details of some silences may be
	// missing. An id in SilencedBy silences its alert even without details here.
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
	// EndsAt is when the alert counts as resolved unless Prometheus sends it again. UpdatedAt is when
	// it was last sent, or zero if that is unknown.
	EndsAt, UpdatedAt time.Time
	// Active means that Alertmanager has processed the alert and reports the state "active": it is
	// neither silenced nor inhibited. A time interval that mutes the alert does not change this state.
	Active bool
	// SilencedBy are the ids of the silences that cover the alert. InhibitedBy are the fingerprints
	// of the alerts that inhibit it.
	SilencedBy, InhibitedBy []string
	// MutedBy are the time intervals that mute the alert for Drydock's receiver, as of the last
	// notification of the alert's group. So the start or the end of an interval may show up to one
	// group_interval later. A new group shows no interval until its group_wait has passed. MutedBy
	// is empty if the receiver is not configured.
	MutedBy []string
	// Receivers are the full names of the receivers that get the alert, according to the replica's
	// routes. Several alerts may share one list.
	Receivers []string
}

// RoutedHere reports whether Alertmanager sends the alert to Drydock's receiver. The full name must
// be equal: the Prometheus operator puts namespace/name/ before a receiver's name, so another
// tenant's receiver may end in the same name.
func (a Alert) RoutedHere(c *remediations.Config) bool {
	return c.Receiver == "" || slices.Contains(a.Receivers, c.Receiver)
}

// silent reports whether Prometheus is late with the alert: it has not sent the alert for two
// resend intervals. With each sending, Prometheus sets the alert's end four intervals later. So
// Alertmanager shows an alert as active for minutes after Prometheus has stopped.
func (a Alert) silent(now time.Time) bool {
	life := a.EndsAt.Sub(a.UpdatedAt)
	return !a.EndsAt.IsZero() && !a.UpdatedAt.IsZero() && life > 0 && now.Sub(a.UpdatedAt) > life/2
}
