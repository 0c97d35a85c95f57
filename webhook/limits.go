package webhook

import (
	"time"

	"drydock.dev/drydock/internal/httpserver"
)

// Limits on what all clients of the webhook's port may take together. The API servers are the only clients that it is for.
const (
	// maxBody is the longest AdmissionReview: two Nodes of the 1.5 MiB that etcd can hold, of characters that JSON writes
	// with six bytes each.
	maxBody = 20 << 20
	// longestBodiesAtOnce bounds the bytes of all long bodies in memory. The review of an ordinary Node takes 60 KiB, and
	// is no long one.
	longestBodiesAtOnce = 1
	// maxDecoded bounds what all bodies in memory may occupy when they are decoded: room for a Node with 64,000 labels.
	maxDecoded = 48 << 20
	// maxRequests bounds the requests that are judged at once.
	maxRequests = 32
	// patience is how long a request waits for its place, and then for memory. The API server waits for 2 s in all.
	patience = 500 * time.Millisecond
	// judgeWithin bounds one request, with its reads of the API server.
	judgeWithin = 2 * time.Second
	// shutdownGrace lets requests in progress finish.
	shutdownGrace = 2 * time.Second
)

func limits() httpserver.Limits {
	return httpserver.Limits{
		Connections: 256, Kept: 64, Patience: 500 * time.Millisecond, Bodies: true, HeaderBytes: 16 << 10,
		Header: 2 * time.Second, Read: 3 * time.Second, Write: 6 * time.Second, Idle: 90 * time.Second,
	}
}
