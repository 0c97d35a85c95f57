package alertmanager

import "hash/maphash"

// others are the alerts of no interest, by what the replica wrote of them. A large company's Alertmanager shows thousands,
// each the same letter by letter until Prometheus sends it again, once a minute or so: what was read once needs no reading
// at the next poll.
type others map[written]other

// written is an alert as it stands in an answer: 128 bits that nobody can foresee, in place of a kilobyte.
type written [2]uint64

// other is what is kept of an alert of no interest, because it may inhibit one that is.
type other struct{ fingerprint, name string }

var seeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}

func writtenAs(text []byte) written {
	return written{maphash.Bytes(seeds[0], text), maphash.Bytes(seeds[1], text)}
}
