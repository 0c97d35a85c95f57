package redfish

import (
	"fmt"
	"strings"
)

// metal3 reports that the BMC belongs to the baremetal-operator, by the name of the host; empty: it
// does not. The operator restores the power state that it wants, so it would fight against a reset.
// The form of the ID is in metal3-io/cluster-api-provider-metal3
// baremetal/metal3machine_manager.go: metal3://NAMESPACE/HOST/MACHINE, in older releases
// metal3://UUID.
func metal3(providerID string) string {
	id, is := strings.CutPrefix(providerID, "metal3://")
	if !is {
		return ""
	}
	host := "a BareMetalHost"
	if parts := strings.Split(id, "/"); len(parts) == 3 {
		host = fmt.Sprintf("BareMetalHost %.200q", parts[0]+"/"+parts[1])
	}
	return host + " owns the machine, and its operator would fight a reset by anybody else; take the node out of providers.redfish, and configure providers.annotation with preset metal3, which asks that operator for the reboot"
}
