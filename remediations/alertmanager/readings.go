package alertmanager

import (
	"hash/maphash"

	"drydock.dev/drydock/remediations/alerts"
)

// readings are decoded alerts, by the hash of their JSON text. In a storm the replica shows
// thousands of alerts, and each text stays the same until Prometheus sends the alert again, about
// once a minute. The same text need not be decoded again.
type readings map[written]reading

// A 128-bit hash of an alert's JSON text, which has about a kilobyte. Its seeds are random, so a
// client cannot choose two texts with the same hash.
type written [2]uint64

// reading always has the name and the node, because the alert may inhibit another one.
type reading struct {
	fingerprint, name string
	nodes             []string
	// Nil if the alert is of no interest.
	alert *alerts.Alert
}

var seeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}

func writtenAs(text []byte) written {
	return written{maphash.Bytes(seeds[0], text), maphash.Bytes(seeds[1], text)}
}
