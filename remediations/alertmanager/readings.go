package alertmanager

import (
	"hash/maphash"

	"drydock.dev/drydock/remediations/alerts"
)

// readings are decoded alerts. The key is the hash of the JSON text that the replica sent for the
// alert. In a storm the replica shows thousands of alerts, and the text of each stays the same
// until Prometheus sends the alert again, about once a minute. An alert with the same text need not
// be decoded again at the next poll.
type readings map[written]reading

// written is a 128-bit hash of an alert's JSON text. It takes less memory than the text, which has
// about a kilobyte. Its seeds are random, so a client cannot choose two texts with the same hash.
type written [2]uint64

// reading is a decoded alert. It always has the name and the node, because the alert may inhibit
// another one. It has the whole alert only if the alert is of interest.
type reading struct {
	fingerprint, name string
	nodes             []string
	// alert is nil if the alert is of no interest.
	alert *alerts.Alert
}

var seeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}

func writtenAs(text []byte) written {
	return written{maphash.Bytes(seeds[0], text), maphash.Bytes(seeds[1], text)}
}
