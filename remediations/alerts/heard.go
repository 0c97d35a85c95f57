package alerts

import (
	"maps"
	"time"
)

// Heard is when each replica last received the Watchdog, by its URL and its own clock. Times of two replicas cannot be compared.
type Heard map[string]time.Time

// aheadMost is how far the clock of a replica may be ahead.
const aheadMost = 5 * time.Minute

// Heard is what the replicas that answered say. A time that lies ahead is left out: ahead names the replicas that gave one.
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

// Since says that a replica has received the Watchdog again since then.
func (h Heard) Since(then Heard) bool {
	for url, at := range h {
		if before, known := then[url]; known && at.After(before) {
			return true
		}
	}
	return false
}

// And adds the replicas that h does not know yet: from now on they can be compared with themselves.
func (h Heard) And(later Heard) Heard {
	out := make(Heard, len(later))
	maps.Copy(out, later)
	maps.Copy(out, h)
	return out
}
