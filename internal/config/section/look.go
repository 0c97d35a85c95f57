package section

import (
	"time"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
)

// LookTimeout reads how long one request of an observation may wait for its answer. The limit is
// remediations.LookFor, because Drydock does not use an observation that took longer.
func LookTimeout(r Reader, p Pointer, written string, least time.Duration) time.Duration {
	d, ok := r.Duration(p, written, least)
	if ok && d > remediations.LookFor {
		r.Fault(p, "%s is too long; write at most %s, because Drydock repairs nothing after a longer observation", written, text.Duration(remediations.LookFor))
	}
	return d
}
