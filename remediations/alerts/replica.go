package alerts

import (
	"slices"
	"time"

	"drydock.dev/drydock/remediations"
)

// Replica is one replica's answer. Several callers may share one: read it, do not write to it.
type Replica struct {
	// URL is the replica's, without credentials, with the address in place of the host name. A URL
	// keeps the name where the name has no address, and where a proxy resolves the name.
	URL string
	// Err is why the replica gave no answer: its name has no address, it did not answer in time, or
	// its answer is not whole. The other fields are empty then and mean nothing: no alert is
	// absent.
	Err error
	// Watchdog says that the replica has the Watchdog alert. A silenced or inhibited one counts
	// too: it proves the same.
	Watchdog bool
	// WatchdogAt is when the replica last received the Watchdog, by its own clock. A source that is
	// gone leaves the Watchdog there for minutes, but does not send it again.
	WatchdogAt time.Time
	// BlindBy names the active alerts that match blindWhen; empty: none. SourceDown says that the
	// shipped alert DrydockSourceDown is one of them. BlindBy does not name it: one Prometheus that
	// does not see the nodes proves nothing while another one sees them all.
	BlindBy    string
	SourceDown bool
	// SourceSeen is the alert that fires while a Prometheus sees all nodes: when it was last sent,
	// and its end. Nil: the replica has none.
	SourceSeen *Alert
	// Alerts are those that a policy might want, by fingerprint.
	Alerts map[string]Alert
	// Inhibitors are the alerts in InhibitedBy, by fingerprint, where the replica showed them, of interest to anybody
	// or not: the labels alertname and Config.NodeLabels.
	Inhibitors map[string]map[string]string
	// SelfTest are the alerts that always fire, as this replica has them. They are not in Alerts.
	// Where none of them is routed to the configured receiver, NoReceiver says that the replica has
	// no receiver of that name, and Akin are the receivers whose names end in it, behind a slash.
	SelfTest   []Alert
	NoReceiver bool
	Akin       []string
	// Silences are details of the silences in SilencedBy, by id. Some may be missing: an id in
	// SilencedBy silences whether it is here or not.
	Silences map[string]Silence
}

// Silence is what people said when they made it, and when it ends.
type Silence struct {
	Author, Comment string
	EndsAt          time.Time
}

// Alert is one alert as a replica has it. Alertmanager reports no alert whose end has passed.
type Alert struct {
	Labels map[string]string
	// StartsAt is when it began to fire, as Prometheus says.
	StartsAt time.Time
	// EndsAt is when it counts as resolved unless it is sent again, UpdatedAt when it was last
	// sent; zero: not known.
	EndsAt, UpdatedAt time.Time
	// Active is Alertmanager's state "active": neither silenced nor inhibited, and processed. A
	// time interval that mutes the alert does not change its state.
	Active bool
	// SilencedBy are the ids of the silences that cover it, InhibitedBy the fingerprints of the
	// alerts that inhibit it.
	SilencedBy, InhibitedBy []string
	// MutedBy are the time intervals that mute it for Drydock's receiver. They are as old as the
	// last notification of the alert's group: an interval that begins or ends shows one
	// group_interval later, and a new group shows none until its group_wait has passed. Empty where
	// the receiver is not configured.
	MutedBy []string
	// Receivers are those that the replica's routes lead the alert to, by their whole names. Alerts
	// may share one list.
	Receivers []string
}

// RoutedHere says that Alertmanager sends the alert to Drydock's receiver. Only the whole name
// counts: the Prometheus operator writes namespace/name/ before it, and a tenant may call a
// receiver of its own as Drydock's is called.
func (a Alert) RoutedHere(c *remediations.Config) bool {
	return c.Receiver == "" || slices.Contains(a.Receivers, c.Receiver)
}

// silent says that whoever sends the alert has missed two of the times at which it would have sent
// it again: Prometheus gives an alert an end of four such times with each sending, so an alert
// outlives its dead source by minutes.
func (a Alert) silent(now time.Time) bool {
	life := a.EndsAt.Sub(a.UpdatedAt)
	return !a.EndsAt.IsZero() && !a.UpdatedAt.IsZero() && life > 0 && now.Sub(a.UpdatedAt) > life/2
}
