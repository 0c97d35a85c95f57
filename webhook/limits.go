package webhook

import (
	"time"

	"drydock.dev/drydock/internal/httpserver"
)

// All clients together may use this much. Only API servers need the port, but any client may reach
// it.
const (
	// Two Nodes of 1.5 MiB, the most that etcd can hold, with characters that JSON escapes with six
	// bytes each.
	maxBody = 20 << 20
	// All long bodies together: one of maxBody bytes, or several shorter ones. The review of an
	// ordinary Node takes 60 KiB and does not count as long.
	longestBodiesAtOnce = 1
	// The memory of all decoded bodies, in bytes: enough for a Node with 64,000 labels.
	maxDecoded  = 48 << 20
	maxRequests = 32
	// How long a request waits for memory for its body, and then again for one of the maxRequests
	// places. The API server waits at most 2 s for the answer.
	patience = 500 * time.Millisecond
	// One request, including its reads from the API server.
	judgeWithin   = 2 * time.Second
	shutdownGrace = 2 * time.Second
)

func limits() httpserver.Limits {
	return httpserver.Limits{
		Connections: 256, Kept: 64, Patience: 500 * time.Millisecond, Bodies: true, HeaderBytes: 16 << 10,
		Header: 2 * time.Second, Read: 3 * time.Second, Write: 6 * time.Second, Idle: 90 * time.Second,
	}
}
