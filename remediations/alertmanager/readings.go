package alertmanager

import (
	"hash/maphash"

	"drydock.dev/drydock/remediations/alerts"
)

// readings are alerts as they were read, by what the replica wrote of them. In a storm it shows thousands, each written as
// before until Prometheus sends it again, once a minute or so: what was read once needs no reading at the next poll.
type readings map[written]reading

// written is an alert as it stands in an answer: 128 bits that nobody can foresee, in place of a kilobyte.
type written [2]uint64

// reading is an alert that was read: its name and its node, because it may inhibit another one, and all of it where it is of interest.
type reading struct {
	fingerprint, name string
	nodes             []string
	// alert is nil where it is of no interest.
	alert *alerts.Alert
}

var seeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}

func writtenAs(text []byte) written {
	return written{maphash.Bytes(seeds[0], text), maphash.Bytes(seeds[1], text)}
}
