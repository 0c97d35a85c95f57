package alerts

import (
	"maps"
	"time"
)

// Heard has the time when each replica last received the Watchdog, by the replica's own clock. The
// key is the replica's URL. Times of two replicas cannot be compared.
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

// Since reports whether at least one replica has received the Watchdog again: its time in h is
// later than its time in then. A replica without a time in then does not count.
func (h Heard) Since(then Heard) bool {
	for url, at := range h {
		if before, known := then[url]; known && at.After(before) {
			return true
		}
	}
	return false
}

// And returns h with an added time for each replica that is only in later. From then on, Since can
// compare the times of these replicas, too.
func (h Heard) And(later Heard) Heard {
	out := make(Heard, len(later))
	maps.Copy(out, later)
	maps.Copy(out, h)
	return out
}
