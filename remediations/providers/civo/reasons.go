package civo

import "drydock.dev/drydock/remediations/providers/kit"

type reason string

const (
	reasonNotFound       reason = "NotFound"       // the cluster does not have the instance
	reasonAmbiguous      reason = "Ambiguous"      // more than one instance could be the node's
	reasonChanged        reason = "Changed"        // the hostname or ID is no longer that of the recorded instance
	reasonInTransition   reason = "InTransition"   // Civo is building or deleting the instance
	reasonGPUs           reason = "GPUs"           // Drydock never replaces an instance with GPUs
	reasonUnauthorized   reason = "Unauthorized"   // the API key cannot be read, or Civo refuses it
	reasonQuota          reason = "Quota"          // the account's quota is reached
	reasonRejected       reason = "Rejected"       // Civo understood the request and refused it
	reasonUnreachable    reason = "Unreachable"    // no connection, or no answer to a read
	reasonUnavailable    reason = "Unavailable"    // Civo answers that it is temporarily unavailable
	reasonBadAnswer      reason = "BadAnswer"      // an answer to a read that is unusable
	reasonUnknownCluster reason = "UnknownCluster" // Civo has no such cluster in the region
	reasonWrongRegion    reason = "WrongRegion"    // Civo has no such region
	reasonBusy           reason = "Busy"           // an earlier call is in progress
	reasonWithheld       reason = "Withheld"       // the caller's mayStill returned an error
)

var reasons = map[reason]struct {
	concern kit.Concern
	advice  string
}{
	reasonNotFound:       {kit.Machine, "compare the node's spec.providerID and name with the instances of cluster {cluster} in region {region} at Civo"},
	reasonAmbiguous:      {kit.Machine, "find out at Civo which instance is this node's, and correct the node's spec.providerID or remove the other instance"},
	reasonChanged:        {kit.Machine, "Drydock looks up the machine again"},
	reasonInTransition:   {kit.Machine, "Drydock waits until Civo has finished"},
	reasonGPUs:           {kit.Machine, "machines with GPUs are scarce; check the instance at Civo, and replace it by hand if necessary"},
	reasonUnauthorized:   {kit.Account, "put a valid API key into {key file}"},
	reasonQuota:          {kit.Account, "raise the account's quota at Civo"},
	reasonRejected:       {kit.Machine, "check the instance at Civo"},
	reasonUnreachable:    {kit.Passing, "check the network between Drydock and Civo, and Civo's status"},
	reasonUnavailable:    {kit.Passing, "check Civo's status"},
	reasonBadAnswer:      {kit.Setup, "check that apiURL is Civo's API, that no proxy answers instead of it, and Civo's status"},
	reasonUnknownCluster: {kit.Setup, "check clusterID {cluster} and region {region} in Drydock's configuration"},
	reasonWrongRegion:    {kit.Setup, "check region {region} in Drydock's configuration, and Civo's status"},
	reasonBusy:           {kit.Passing, "Drydock tries again when that call has ended"},
	reasonWithheld:       {kit.Passing, "the leading replica decides again"},
}

// Concern returns which machines the reason concerns, and for how long.
func (r reason) Concern() kit.Concern { return reasons[r].concern }
