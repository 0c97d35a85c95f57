package alerts

import (
	"maps"
	"time"
)

// Heard is when each replica last received the Watchdog, by its URL and its own clock. Times of two
// replicas cannot be compared.
type Heard map[string]time.Time

// aheadMost is how far the clock of a replica may be ahead.
const aheadMost = 5 * time.Minute

// Heard returns the times of the replicas that answered. It leaves out times that lie ahead, and
// returns the replicas that gave them as ahead.
func (s *Snapshot) Heard() (heard Heard, ahead []string) {
	heard = Heard{}
	for _, r := range s.Replicas {
		switch {
		case r.Err != nil || r.WatchdogAt.IsZero():
		case r.WatchdogAt.Sub(s.AskedAt) > aheadMost:
			ahead = append(ahead, r.URL)
		default:
			heard[r.URL] = r.WatchdogAt
		}
	}
	return heard, ahead
}

// Since reports whether a replica has received the Watchdog again since then.
func (h Heard) Since(then Heard) bool {
	for url, at := range h {
		if before, known := then[url]; known && at.After(before) {
			return true
		}
	}
	return false
}

// And adds the replicas that h does not know yet, so that their later times can be compared with
// these.
func (h Heard) And(later Heard) Heard {
	out := make(Heard, len(later))
	maps.Copy(out, later)
	maps.Copy(out, h)
	return out
}
