package alertmanager

import (
	"hash/maphash"

	"drydock.dev/drydock/remediations/alerts"
)

// readings are alerts as they were read, by the replica's text of them. In a storm the replica
// shows thousands, each with the same text until Prometheus sends it again, about once a minute. An
// alert that was read once need not be read at the next poll.
type readings map[written]reading

// written identifies the text of an alert in an answer: 128 bits that cannot be foreseen, in place
// of a kilobyte.
type written [2]uint64

// reading is an alert that was read: its name and its node, because it may inhibit another one, and
// all of it if it is of interest.
type reading struct {
	fingerprint, name string
	nodes             []string
	// alert is nil if it is of no interest.
	alert *alerts.Alert
}

var seeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}

func writtenAs(text []byte) written {
	return written{maphash.Bytes(seeds[0], text), maphash.Bytes(seeds[1], text)}
}
