package receiver

import (
	"time"

	"drydock.dev/drydock/internal/httpserver"
)

// Limits on what one post, one alert and one connection may take.
const (
	// defaultMaxBodyBytes is room for about 2,500 alerts of 1.5 KiB.
	defaultMaxBodyBytes = 4 << 20

	// maxAlerts bounds the alerts of one post. A post is one group, and a group
	// is meant to be one node's.
	maxAlerts = 10_000

	// maxLabels bounds one alert. Prometheus's own advice for label_limit is
	// about 30.
	maxLabels = 64

	// maxNameBytes bounds a label's name, maxValueBytes its value.
	// A node's name has at most 253 bytes; all else is for people to read.
	maxNameBytes  = 256
	maxValueBytes = 4 << 10

	// maxMapBytes bounds all labels of one alert as they arrive. Beyond it they
	// are not decoded at all: a map takes ten times the memory of its text.
	maxMapBytes = 64 << 10

	// maxSentenceBytes bounds an error answer, because a decoder's error may
	// quote what it could not read.
	maxSentenceBytes = 300

	// maxTokenBytes bounds the token file.
	maxTokenBytes = 16 << 10

	// maxHeaderBytes is for an Authorization header and little else.
	maxHeaderBytes = 16 << 10

	// maxConnections bounds open connections; an Alertmanager keeps a few.
	maxConnections = 512

	// keptConnections bounds those that stay open for another post; beyond, each
	// is closed with its answer, so that whoever waits to be let in gets its turn.
	keptConnections = maxConnections / 4

	// maxPosts bounds the posts in progress.
	maxPosts = 16

	// bodyMemory bounds the bytes of all bodies in memory, where maxBodyBytes is not greater. Ordinary bodies are a hundred
	// times shorter than maxBodyBytes.
	bodyMemory = 16 << 20

	// decodedMemory bounds what all bodies in memory may occupy when they are decoded: room for two posts of maxAlerts with
	// 25 labels and annotations each.
	decodedMemory = 64 << 20

	// writesAtOnce bounds the alerts of one post that are being taken.
	writesAtOnce = 16

	// retryAfter is what a 503 asks for. Alertmanager has its own back-off.
	retryAfter = 5 * time.Second
)

// timeouts are constants but for tests.
type timeouts struct {
	header   time.Duration // the request's header has to be there
	silent   time.Duration // its header, while another connection waits for its place
	read     time.Duration // header and body have to be there
	write    time.Duration // from the header's end to the answer's end
	place    time.Duration // one of maxPosts has to be free, then the memory for its body; part of read
	idle     time.Duration // between two posts on one connection
	age      time.Duration // of a connection
	handOver time.Duration // all alerts of a post have to be taken
	// shutdown lets posts under way finish when the process ends. It is less than
	// a Pod's 30 s, and handOver does not fit into it: who is cut off posts again.
	shutdown time.Duration
}

func defaultTimeouts() timeouts {
	return timeouts{
		header:   5 * time.Second,
		silent:   time.Second,
		read:     10 * time.Second,
		write:    25 * time.Second, // read + handOver, and 5 s to answer
		place:    5 * time.Second,
		idle:     5 * time.Second, // in a storm the next comes sooner; after one, what is kept would have every other closed with its answer
		age:      time.Minute,
		handOver: 10 * time.Second,
		shutdown: 5 * time.Second,
	}
}

func (t timeouts) limits() httpserver.Limits {
	return httpserver.Limits{
		Connections: maxConnections, Kept: keptConnections, Patience: t.silent, Age: t.age, Bodies: true, HeaderBytes: maxHeaderBytes,
		Header: t.header, Read: t.read, Write: t.write, Idle: t.idle,
	}
}
