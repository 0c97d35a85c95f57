package providertest

import "testing"

// Case returns one case of the suite, for the tests of the suite itself.
func Case(name string) func(testing.TB, Provider) {
	for _, c := range cases() {
		if c.name == name {
			return c.run
		}
	}
	return nil
}
