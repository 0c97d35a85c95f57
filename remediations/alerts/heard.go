package alerts

import (
	"maps"
	"time"
)

// Heard has the time when each replica last received the Watchdog, by the replica's own clock and
// URL. Times of two replicas cannot be compared.
type Heard map[string]time.Time

// A replica's clock may be so far ahead of Drydock's clock.
const aheadMost = 5 * time.Minute

// Heard returns the times of the replicas that answered, apart from times too far in the future.
// ahead are the URLs of those.
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

// Since reports whether at least one replica has received the Watchdog again. A replica without a
// time in then does not count.
func (h Heard) Since(then Heard) bool {
	for url, at := range h {
		if before, known := then[url]; known && at.After(before) {
			return true
		}
	}
	return false
}

// And returns h with the times of replicas that are only in later, so that Since can compare them
// from then on.
func (h Heard) And(later Heard) Heard {
	out := make(Heard, len(later))
	maps.Copy(out, later)
	maps.Copy(out, h)
	return out
}
