package alertmanager

import "time"

// Each limit is far above what a healthy fleet needs, so reaching one means that something is
// wrong, and is an error.
const (
	// From the connection to the last byte of one replica. Together with resolving the names, a
	// poll takes at most twice this, well within the 15 s between polls.
	defaultTimeout = 3 * time.Second

	// An alert takes 1 to 2 KiB, so this is enough for about 40,000 alerts, of interest or not.
	maxAnswerBytes = 64 << 20

	// The nesting of an answer's JSON.
	maxDepth = 32

	// Of one element of a list, for example one alert with its labels, annotations and receivers,
	// because each element is decoded as a whole.
	maxElementBytes, maxElementValues = 1 << 20, 10_000

	// Bytes of memory for the alerts of interest of one replica. An alert with 15 labels takes 2
	// KiB.
	maxKept = 48 << 20

	// The alerts of interest that are stored of one replica.
	maxAlerts = 20_000

	// The silences whose details one poll reads from one replica. The ids of the others are known,
	// and that is enough to hold a repair.
	maxSilences = 16

	// A small Alertmanager answers only 8 requests at a time.
	silencesAtOnce = 4

	// An answer that is not a list: a silence, or a silence's id.
	maxObjectBytes = 256 << 10

	// Bytes of an author's name and of a comment.
	maxWords = 256

	// The configured URLs, and the replicas behind one name. An Alertmanager cluster has only a
	// handful of replicas.
	maxReplicas = 64

	// One for each cluster that shares the Alertmanager, and a few more.
	maxSelfTests = 64

	// Of one alert, and in alerts.Replica.Akin.
	maxReceivers = 64

	// The lists of receivers that alerts share. Beyond this, an alert with other receivers gets a
	// list of its own.
	maxRoutes = 256

	// One active alert that matches blindWhen is enough to hold repairs. The names are for people.
	maxBlindBy = 16

	// Longer than the time between two polls, so that each poll reuses the connections, and short
	// enough that a connection to a replica's old address is closed soon.
	idleConnections = time.Minute
)
