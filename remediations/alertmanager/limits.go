package alertmanager

import "time"

// These limits bound the answers of Alertmanagers. Each limit is far above what a healthy fleet
// needs, so reaching one means that something is wrong, and is an error.
const (
	// defaultTimeout bounds the queries of one replica, from the connection to the last byte. A poll
	// queries all replicas at the same time. Together with resolving their names it takes at most
	// twice the timeout, which is well within the 15 s between polls.
	defaultTimeout = 3 * time.Second

	// maxAnswerBytes bounds one answer of a replica. An alert takes 1 to 2 KiB, so this is enough for
	// about 40,000 alerts, of interest or not.
	maxAnswerBytes = 64 << 20

	// maxDepth bounds the nesting of an answer's JSON.
	maxDepth = 32

	// maxElementBytes and maxElementValues bound one element of a list, for example one alert with its
	// labels, annotations and receivers, because each element is decoded as a whole.
	maxElementBytes, maxElementValues = 1 << 20, 10_000

	// maxKept bounds the memory for the alerts of interest of one replica, in bytes. An alert with 15
	// labels takes 2 KiB.
	maxKept = 48 << 20

	// maxAlerts bounds the number of alerts of interest that are stored of one replica.
	maxAlerts = 20_000

	// maxSilences bounds the silences whose details one poll reads from one replica. The ids of the
	// other silences are known, and that is enough to hold a repair.
	maxSilences = 16

	// silencesAtOnce bounds the parallel requests for details of silences. A small Alertmanager
	// answers only 8 requests at a time.
	silencesAtOnce = 4

	// maxObjectBytes bounds an answer that is not a list: a silence, or a silence's id.
	maxObjectBytes = 256 << 10

	// maxWords bounds the bytes that are stored of an author's name and of a comment.
	maxWords = 256

	// maxReplicas bounds the configured URLs, and the replicas behind one name. An Alertmanager
	// cluster has only a handful of replicas.
	maxReplicas = 64

	// maxSelfTests bounds the self-test's alerts that are stored of one replica: one for each cluster
	// that shares the Alertmanager, and a few more.
	maxSelfTests = 64

	// maxReceivers bounds the receivers that are stored of one alert, and the receivers in
	// alerts.Replica.Akin.
	maxReceivers = 64

	// maxRoutes bounds the lists of receivers that alerts share. Alerts with the same receivers
	// share one copy of the list. When there are maxRoutes lists, an alert with other receivers
	// gets a list of its own.
	maxRoutes = 256

	// maxBlindBy bounds how many names of active alerts that match blindWhen are stored. One such
	// alert is enough to hold repairs. The names are for people.
	maxBlindBy = 16

	// idleConnections is how long an unused connection stays open. It is longer than the time
	// between two polls, so that each poll reuses the connections. It is short enough that a
	// connection to a replica's old address is closed soon.
	idleConnections = time.Minute
)
