package receiver

import (
	"time"

	"drydock.dev/drydock/internal/httpserver"
)

// Limits on what one post, one alert and one connection may take.
const (
	// Enough for about 2,500 alerts of 1.5 KiB.
	defaultMaxBodyBytes = 4 << 20

	// The alerts of one post. A post has the alerts of one group, and a group should only have the
	// alerts of one node.
	maxAlerts = 10_000

	// Of one alert. Prometheus recommends a label_limit of about 30.
	maxLabels = 64

	// Of a label. The name of a node has at most 253 bytes. Longer values are text for people.
	maxNameBytes  = 256
	maxValueBytes = 4 << 10

	// The JSON text of one alert's labels. Longer labels are not decoded at all, because a map
	// takes ten times the memory of its text.
	maxMapBytes = 64 << 10

	// An error answer, because a decoder's error may quote its input.
	maxSentenceBytes = 300

	maxTokenBytes = 16 << 10

	// Enough for an Authorization header and little else.
	maxHeaderBytes = 16 << 10

	// Open connections. An Alertmanager keeps a few of them open.
	maxConnections = 512

	// The connections that stay open for another post. Any further one is closed after its answer,
	// so that waiting clients can connect.
	keptConnections = maxConnections / 4

	// Posts in progress.
	maxPosts = 16

	// All bodies in memory. If maxBodyBytes is greater, one body of maxBodyBytes is allowed.
	// Ordinary bodies are 100 times shorter, so many of them fit at the same time.
	bodyMemory = 16 << 20

	// All decoded bodies: enough for two posts of maxAlerts alerts with 25 labels and annotations
	// each.
	decodedMemory = 64 << 20

	// The alerts of one post that the Recorder handles at the same time.
	writesAtOnce = 16

	// For a 503. Alertmanager ignores it and uses its own back-off.
	retryAfter = 5 * time.Second
)

// timeouts are the limits of a connection and of a post. Only tests change the defaults.
type timeouts struct {
	header   time.Duration // until the request's header is complete
	silent   time.Duration // until the request's header is complete, while another connection waits for a place
	read     time.Duration // until header and body are complete
	write    time.Duration // from the end of the header to the end of the answer
	place    time.Duration // until one of maxPosts places is free, and then until the memory for the body is free; part of read
	idle     time.Duration // between two posts on one connection
	age      time.Duration // the longest life of a connection
	dispatch time.Duration // until all alerts of a post are accepted
	// How long posts in progress may continue when the process ends, less than a Pod's default
	// grace period of 30 s. It may be shorter than dispatch, because Alertmanager repeats a post
	// that is cut off.
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
