package receiver

import (
	"time"

	"drydock.dev/drydock/internal/httpserver"
)

// Limits on what one post, one alert and one connection may take.
const (
	// defaultMaxBodyBytes is enough for about 2,500 alerts of 1.5 KiB.
	defaultMaxBodyBytes = 4 << 20

	// maxAlerts bounds the alerts of one post. A post has the alerts of one group, and a group should
	// only have the alerts of one node.
	maxAlerts = 10_000

	// maxLabels bounds the labels of one alert. Prometheus recommends a label_limit of about 30.
	maxLabels = 64

	// maxNameBytes bounds the name of a label, and maxValueBytes bounds its value. The name of a node
	// has at most 253 bytes. Drydock does not need longer values, which are text for people.
	maxNameBytes  = 256
	maxValueBytes = 4 << 10

	// maxMapBytes bounds the JSON text of one alert's labels. Longer labels are not decoded at all,
	// because a map takes ten times the memory of its text.
	maxMapBytes = 64 << 10

	// maxSentenceBytes bounds an error answer, because a decoder's error may quote its input.
	maxSentenceBytes = 300

	// maxTokenBytes bounds the token file.
	maxTokenBytes = 16 << 10

	// maxHeaderBytes bounds a request's header. It is enough for an Authorization header and little
	// else.
	maxHeaderBytes = 16 << 10

	// maxConnections bounds the open connections. An Alertmanager keeps a few of them open.
	maxConnections = 512

	// keptConnections bounds the connections that stay open for another post. The receiver closes any
	// further connection after its answer, so that waiting clients can connect.
	keptConnections = maxConnections / 4

	// maxPosts bounds the posts in progress.
	maxPosts = 16

	// bodyMemory bounds the bytes of all bodies in memory. If maxBodyBytes is greater than
	// bodyMemory, one body of maxBodyBytes is allowed. Ordinary bodies are 100 times shorter than
	// maxBodyBytes, so many of them fit at the same time.
	bodyMemory = 16 << 20

	// decodedMemory bounds the memory of all decoded bodies. It is enough for two posts of maxAlerts
	// alerts with 25 labels and annotations each.
	decodedMemory = 64 << 20

	// writesAtOnce bounds the alerts of one post that the Recorder handles at the same time.
	writesAtOnce = 16

	// retryAfter is the Retry-After header of a 503. Alertmanager ignores it and uses its own
	// back-off.
	retryAfter = 5 * time.Second
)

// timeouts are the time limits of a connection and of a post. Only tests change the defaults.
type timeouts struct {
	header   time.Duration // until the request's header is complete
	silent   time.Duration // until the request's header is complete, while another connection waits for a place
	read     time.Duration // until header and body are complete
	write    time.Duration // from the end of the header to the end of the answer
	place    time.Duration // until one of maxPosts places is free, and then until the memory for the body is free; part of read
	idle     time.Duration // between two posts on one connection
	age      time.Duration // the longest life of a connection
	dispatch time.Duration // until all alerts of a post are accepted
	// shutdown is how long posts in progress may continue when the process ends. It is less than a
	// Pod's default grace period of 30 s. It may be shorter than dispatch, because Alertmanager
	// repeats a post that the shutdown cuts off.
	shutdown time.Duration
}

func defaultTimeouts() timeouts {
	return timeouts{
		header:   5 * time.Second,
		silent:   time.Second,
		read:     10 * time.Second,
		write:    25 * time.Second, // read + dispatch, and 5 s to answer
		place:    5 * time.Second,
		idle:     5 * time.Second, // in a storm the next post comes sooner; if idle connections were kept longer, every other connection would be closed after its answer
		age:      time.Minute,
		dispatch: 10 * time.Second,
		shutdown: 5 * time.Second,
	}
}

func (t timeouts) limits() httpserver.Limits {
	return httpserver.Limits{
		Connections: maxConnections, Kept: keptConnections, Patience: t.silent, Age: t.age, Bodies: true, HeaderBytes: maxHeaderBytes,
		Header: t.header, Read: t.read, Write: t.write, Idle: t.idle,
	}
}
