package alertmanager

import "time"

// Limits on the size of others' answers. Each is far above what a healthy fleet needs, so reaching
// one means that something is wrong, and is an error.
const (
	// defaultTimeout bounds one replica from dialling to the last byte. A poll
	// asks all replicas at once, so with the lookup of names it lasts at most
	// twice this, well within the 15 s between polls.
	defaultTimeout = 3 * time.Second

	// maxAnswerBytes bounds one answer of a replica. An alert takes 1 to 2 KiB, so
	// this is room for about 40,000 of them, of interest or not.
	maxAnswerBytes = 64 << 20

	// maxDepth bounds how deep an answer is nested.
	maxDepth = 32

	// maxElementBytes and maxElementValues bound one alert, with its labels, annotations and
	// receivers, and every other element of a list: each is read at once.
	maxElementBytes, maxElementValues = 1 << 20, 10_000

	// maxKept bounds the memory for the alerts of interest of one replica. One with 15 labels takes
	// 2 KiB.
	maxKept = 48 << 20

	// maxAlerts bounds the alerts of interest kept of one replica.
	maxAlerts = 20_000

	// maxSilences bounds the silences whose details one poll reads from one replica. The ids of all
	// are known; details of the rest would read the same.
	maxSilences = 16

	// silencesAtOnce bounds the parallel requests for them, so that they do not use up what a small
	// Alertmanager answers at once, which is 8.
	silencesAtOnce = 4

	// maxObjectBytes bounds an answer that is not a list: a silence, or its id.
	maxObjectBytes = 256 << 10

	// maxWords bounds what is kept of an author's name and of a comment.
	maxWords = 256

	// maxReplicas bounds the configured URLs, and the replicas behind one name.
	// Alertmanager's gossip is not run with more than a handful.
	maxReplicas = 64

	// maxSelfTests bounds the self-test's alerts kept of one replica: one a cluster that shares it,
	// and a few more.
	maxSelfTests = 64

	// maxReceivers bounds the receivers kept of one of them.
	maxReceivers = 64

	// maxRoutes bounds the lists of receivers that alerts share.
	maxRoutes = 256

	// maxBlindBy bounds the names that are kept of blinding alerts; one is enough to hold, the
	// others are for people to read.
	maxBlindBy = 16

	// idleConnections outlive one poll interval, so that each poll reuses them,
	// but not a replica that has moved.
	idleConnections = time.Minute
)
