package alerts

import (
	"maps"
	"time"
)

// Heard has, for the URL of each replica, the time by the replica's own clock at which it last
// received the Watchdog. Times of two replicas cannot be compared.
type Heard map[string]time.Time

// aheadMost is how far a replica's clock may be ahead of Drydock's clock.
const aheadMost = 5 * time.Minute

// Heard returns the times of the replicas that answered. It leaves out times that are more than
// aheadMost in the future, and returns the URLs of their replicas as ahead.
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

// Since reports whether any replica has received the Watchdog again after the times in then.
func (h Heard) Since(then Heard) bool {
	for url, at := range h {
		if before, known := then[url]; known && at.After(before) {
			return true
		}
	}
	return false
}

// And returns h with the replicas of later that h does not have, so that their times can be
// compared in the future. It keeps the times in h.
func (h Heard) And(later Heard) Heard {
	out := make(Heard, len(later))
	maps.Copy(out, later)
	maps.Copy(out, h)
	return out
}
