package receiver

import (
	"time"

	"drydock.dev/drydock/internal/httpserver"
)

// Limits on what one post, one alert and one connection may take.
const (
	// defaultMaxBodyBytes is room for about 2,500 alerts of 1.5 KiB.
	defaultMaxBodyBytes = 4 << 20

	// maxAlerts bounds the alerts of one post. A post is one group, and a group should hold the
	// alerts of one node.
	maxAlerts = 10_000

	// maxLabels bounds one alert. Prometheus's own advice for label_limit is
	// about 30.
	maxLabels = 64

	// maxNameBytes bounds a label's name, maxValueBytes its value. A node's name has at most 253
	// bytes; all other values are for people.
	maxNameBytes  = 256
	maxValueBytes = 4 << 10

	// maxMapBytes bounds all labels of one alert as received. Longer ones are not decoded at all: a
	// map takes ten times the memory of its text.
	maxMapBytes = 64 << 10

	// maxSentenceBytes bounds an error answer, because a decoder's error may quote its input.
	maxSentenceBytes = 300

	// maxTokenBytes bounds the token file.
	maxTokenBytes = 16 << 10

	// maxHeaderBytes has room for an Authorization header and little else.
	maxHeaderBytes = 16 << 10

	// maxConnections bounds open connections; an Alertmanager keeps a few.
	maxConnections = 512

	// keptConnections bounds the connections that stay open for another post. The others are closed
	// with their answers, so that waiting clients get a turn.
	keptConnections = maxConnections / 4

	// maxPosts bounds the posts in progress.
	maxPosts = 16

	// bodyMemory bounds the bytes of all bodies in memory, unless maxBodyBytes is greater. Ordinary
	// bodies are a hundred times shorter than maxBodyBytes.
	bodyMemory = 16 << 20

	// decodedMemory bounds the memory of all decoded bodies: two posts of maxAlerts with 25 labels
	// and annotations each.
	decodedMemory = 64 << 20

	// writesAtOnce bounds the alerts of one post that are handed over at the same time.
	writesAtOnce = 16

	// retryAfter is the Retry-After of a 503. Alertmanager uses its own back-off.
	retryAfter = 5 * time.Second
)

// timeouts are constants; only tests change them.
type timeouts struct {
	header   time.Duration // until the request's header is complete
	silent   time.Duration // until its header is complete, while another connection waits for a place
	read     time.Duration // until header and body are complete
	write    time.Duration // from the end of the header to the end of the answer
	place    time.Duration // until one of maxPosts is free, then the memory for its body; part of read
	idle     time.Duration // between two posts on one connection
	age      time.Duration // of a connection
	dispatch time.Duration // until all alerts of a post are taken
	// shutdown lets running posts finish when the process ends. It is less than a Pod's 30 s and
	// shorter than dispatch: Alertmanager repeats a post that is cut off.
	shutdown time.Duration
}

func defaultTimeouts() timeouts {
	return timeouts{
		header:   5 * time.Second,
		silent:   time.Second,
		read:     10 * time.Second,
		write:    25 * time.Second, // read + dispatch, and 5 s to answer
		place:    5 * time.Second,
		idle:     5 * time.Second, // in a storm the next post comes sooner; longer, idle connections would make every other one close with its answer
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
