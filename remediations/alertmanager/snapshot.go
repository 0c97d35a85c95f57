package alertmanager

import "time"

// The states of an alert that Alertmanager 0.34 knows. A newer one may say
// others; only StateActive means that the alert fires and neither a silence nor
// an inhibition covers it. A mute time does not show in the state.
const (
	StateActive      = "active"
	StateSuppressed  = "suppressed"
	StateUnprocessed = "unprocessed"
)

// Snapshot is what all replicas said at one time. It is shared by all that
// waited for it and never changes: read it, do not write to it.
type Snapshot struct {
	// At is when asking began: every reply was asked for at or after it, so it
	// is the time to count staleness from.
	At time.Time
	// Replicas has an entry for every address of every URL, in the order of the
	// URLs and then of the addresses, and one for a URL whose host name gave no
	// address. It is never empty.
	Replicas []Replica
}

// Replica is one replica's reply.
type Replica struct {
	// URL is the replica's, with the address in place of the host name and
	// without credentials. A URL whose name gave no address, or that is asked
	// through a proxy, keeps the name.
	URL string
	// Err says why there is no reply: the name did not resolve, the replica did
	// not answer in time, or what it answered is not a list of alerts, or of groups
	// where Options.Receiver asks for them. With an Err all else is empty and means
	// nothing; in particular no alert is absent.
	Err error
	// Watchdog: the replica shows an alert that Options.Watchdog matches. A
	// silenced or inhibited one counts too, because it proves the same: alerts
	// arrive here. Always false where no Watchdog is asked for.
	Watchdog bool
	// WatchdogAt is when the replica last received it, by its own clock: a source
	// that is gone leaves the Watchdog there for minutes, but sends it no more.
	WatchdogAt time.Time
	// BlindBy names (label alertname, else the fingerprint) the active alerts
	// that one of Options.BlindWhen matches, sorted, each once, at most 16.
	BlindBy []string
	// SourceSeenAt is when the replica last received an alert that Options.SourceSeen matches, in whichever state, and SourceSeenUntil
	// when that alert counts as resolved unless it is sent again; zero: it has none.
	SourceSeenAt, SourceSeenUntil time.Time
	// SelfTest are the alerts that Options.SelfTest wants.
	SelfTest []SelfTest
	// NoReceiver: none of them is routed to Options.Receiver, and the replica has no receiver of this name. Akin are those
	// of its receivers then whose names end in it, behind a slash.
	NoReceiver bool
	Akin       []string
	// Alerts are the alerts that Options.Keep wants, by fingerprint: 16 lower-case
	// hexadecimal digits, computed from the labels.
	Alerts map[string]Alert
	// Inhibitors are the names of the alerts that inhibit Alerts, by fingerprint: whoever they are of interest to.
	Inhibitors map[string]string
	// Silences are the details of those that silence Alerts, by id, as this
	// replica knows them: at most 16, and one whose details could not be had is
	// missing. An id in SilencedBy silences whether it is here or not.
	Silences map[string]Silence
}

// Alert is one alert as one replica sees it. Alertmanager reports no alert whose
// end has passed.
type Alert struct {
	// Labels are the alert's labels, whole.
	Labels map[string]string
	// StartsAt is when it began to fire, as Prometheus says.
	StartsAt time.Time
	// EndsAt is when it counts as resolved unless it is sent again.
	EndsAt time.Time
	// UpdatedAt is when this replica last received it.
	UpdatedAt time.Time
	// State is StateActive, StateSuppressed, StateUnprocessed, or whatever else
	// the replica says, as it says it.
	State string
	// SilencedBy are the ids of the silences that mute it.
	SilencedBy []string
	// InhibitedBy are the fingerprints of the alerts that inhibit it.
	InhibitedBy []string
	// MutedBy are the time intervals that mute it, sorted: those of every group of
	// Options.Receiver that has it. They are as old as the group's last flush: a
	// mute time that begins or ends shows a group_interval later, and a new group
	// is not muted until its group_wait has passed. Alertmanager 0.34 says them of
	// groups only, so without Options.Receiver this is empty and means nothing.
	MutedBy []string
	// Receivers are those that the replica's routes lead it to, sorted, each once, at most 64. Alerts that go the same way
	// share one list.
	Receivers []string
}
