package redfish

import (
	"fmt"
	"strings"
)

// metal3 returns why Drydock must not reset the node's machine, if the machine belongs to the
// baremetal-operator. It returns "" if the machine does not belong to the operator. The operator
// restores the power state that its BareMetalHost declares, so it would work against a reset.
//
// The provider ID has the form metal3://NAMESPACE/HOST/MACHINE, in older releases metal3://UUID
// (baremetal/metal3machine_manager.go of metal3-io/cluster-api-provider-metal3).
func metal3(providerID string) string {
	id, is := strings.CutPrefix(providerID, "metal3://")
	if !is {
		return ""
	}
	host := "a BareMetalHost"
	if parts := strings.Split(id, "/"); len(parts) == 3 {
		host = fmt.Sprintf("BareMetalHost %.200q", parts[0]+"/"+parts[1])
	}
	return host + " owns the machine, and the baremetal-operator would undo a reset by Drydock; remove the node from providers.redfish, and configure providers.annotation with preset metal3, which requests the reboot from that operator"
}
