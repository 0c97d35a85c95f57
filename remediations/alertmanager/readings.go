package alertmanager

import (
	"hash/maphash"

	"drydock.dev/drydock/remediations/alerts"
)

// readings are decoded alerts, by the replica's JSON text of them. In a storm the replica shows
// thousands of alerts, and the text of each stays the same until Prometheus sends the alert again,
// about once a minute. An alert with the same text need not be decoded again at the next poll.
type readings map[written]reading

// written identifies the JSON text of an alert. It is a 128-bit hash that cannot be foreseen,
// because the text itself takes about a kilobyte.
type written [2]uint64

// reading is a decoded alert. It has the name and the node, because the alert may inhibit another
// one, and the whole alert if it is of interest.
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
