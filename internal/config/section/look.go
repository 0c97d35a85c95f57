package section

import (
	"time"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
)

// LookTimeout reads how long a look at a target may wait for one answer. A longer look must not
// lead to a repair.
func LookTimeout(r Reader, p Pointer, written string, least time.Duration) time.Duration {
	d, ok := r.Duration(p, written, least)
	if ok && d > remediations.LookFor {
		r.Fault(p, "%s is too long; write at most %s, since nothing is repaired after a longer look", written, text.Duration(remediations.LookFor))
	}
	return d
}
