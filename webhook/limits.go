package webhook

import (
	"time"

	"drydock.dev/drydock/internal/httpserver"
)

// These limits bound what all clients of the webhook's port together may use. It is meant for API
// servers only.
const (
	// maxBody is the longest AdmissionReview: two Nodes of 1.5 MiB, the most that etcd can hold,
	// with characters that JSON escapes with six bytes each.
	maxBody = 20 << 20
	// longestBodiesAtOnce bounds the bytes of all long bodies in memory. The review of an ordinary
	// Node takes 60 KiB, which is not long.
	longestBodiesAtOnce = 1
	// maxDecoded bounds the memory of all decoded bodies: room for a Node with 64,000 labels.
	maxDecoded = 48 << 20
	// maxRequests bounds the requests that are judged at the same time.
	maxRequests = 32
	// patience is how long a request waits for its place, and then for memory. The API server waits
	// 2 s in total.
	patience = 500 * time.Millisecond
	// judgeWithin bounds one request, including its reads of the API server.
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
