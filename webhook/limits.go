package webhook

import (
	"time"

	"drydock.dev/drydock/internal/httpserver"
)

// These limits bound what all clients of the webhook's port together may use. Only API servers need
// the port, but any client may reach it.
const (
	// maxBody is the longest AdmissionReview: two Nodes of 1.5 MiB, the most that etcd can hold,
	// with characters that JSON escapes with six bytes each.
	maxBody = 20 << 20
	// longestBodiesAtOnce bounds the memory for all long bodies together: it is enough for one body of
	// maxBody bytes, or for several shorter ones. The review of an ordinary Node takes 60 KiB and does
	// not count as long.
	longestBodiesAtOnce = 1
	// maxDecoded bounds the memory of all decoded bodies, in bytes. It is enough for a Node with
	// 64,000 labels.
	maxDecoded = 48 << 20
	// maxRequests bounds the requests that Drydock checks at the same time.
	maxRequests = 32
	// patience is how long a request waits for memory for its body. After that it waits for one of
	// the maxRequests places, again for at most patience. The API server waits at most 2 s for the
	// answer.
	patience = 500 * time.Millisecond
	// judgeWithin bounds the check of one request, including its reads from the API server.
	judgeWithin = 2 * time.Second
	// shutdownGrace is how long requests in progress may continue when the process ends.
	shutdownGrace = 2 * time.Second
)

func limits() httpserver.Limits {
	return httpserver.Limits{
		Connections: 256, Kept: 64, Patience: 500 * time.Millisecond, Bodies: true, HeaderBytes: 16 << 10,
		Header: 2 * time.Second, Read: 3 * time.Second, Write: 6 * time.Second, Idle: 90 * time.Second,
	}
}
