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
	sub, _ := fs.Sub(shippedPolicies, "policies") // it fails only for a name that is no path
	return sub
}
