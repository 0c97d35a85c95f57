package remediations

import (
	"embed"
	"io/fs"
)

//go:embed policies/*.yaml
var shippedPolicies embed.FS

// ShippedPolicies returns the policies that come with Drydock, as files in the form of the configuration's policies.
// Their order is internal/config's to decide.
func ShippedPolicies() fs.FS {
	sub, err := fs.Sub(shippedPolicies, "policies")
	if err != nil {
		panic(err) // Impossible: the folder is embedded above.
	}
	return sub
}
