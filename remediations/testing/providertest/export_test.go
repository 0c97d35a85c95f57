package providertest

import (
	"testing"
	"time"
)

// Soon changes how long a call may take after its context has ended, until it is restored.
func Soon(d time.Duration) (restore func()) {
	before := soon
	soon = d
	return func() { soon = before }
}

// Case returns one case of the suite, for the tests of the suite itself.
func Case(name string) func(testing.TB, Provider) {
	for _, c := range cases() {
		if c.name == name {
			return c.run
		}
	}
	return nil
}
