package civo

import "drydock.dev/drydock/remediations/providers/kit"

// reason is why Civo, or this package before a call to Civo, did nothing.
type reason string

// The reasons, all of them.
const (
	reasonNotFound       reason = "NotFound"       // no such instance in the cluster, or no instance that could be meant
	reasonAmbiguous      reason = "Ambiguous"      // more than one instance could be meant
	reasonChanged        reason = "Changed"        // no longer the instance that was looked up
	reasonInTransition   reason = "InTransition"   // Civo is building or deleting it already
	reasonGPUs           reason = "GPUs"           // the instance has GPUs, and is never replaced
	reasonUnauthorized   reason = "Unauthorized"   // no usable key, or Civo refuses it
	reasonQuota          reason = "Quota"          // the account's quota is reached
	reasonRejected       reason = "Rejected"       // Civo understood the request and refused it
	reasonUnreachable    reason = "Unreachable"    // no connection, or no answer to a question
	reasonUnavailable    reason = "Unavailable"    // Civo answers that it is temporarily unavailable
	reasonBadAnswer      reason = "BadAnswer"      // an answer to a read that cannot be used
	reasonUnknownCluster reason = "UnknownCluster" // Civo has no such cluster in the region
	reasonWrongRegion    reason = "WrongRegion"    // Civo has no such region
	reasonBusy           reason = "Busy"           // an earlier call was still under way
	reasonWithheld       reason = "Withheld"       // the caller's mayStill returned an error
)

// reasons maps each reason to what it concerns and what a person can do.
var reasons = map[reason]struct {
	concern kit.Concern
	advice  string
}{
	reasonNotFound:       {kit.Machine, "compare the node's spec.providerID and name with the instances of cluster {cluster} in region {region} at Civo"},
	reasonAmbiguous:      {kit.Machine, "find out at Civo which instance is this node's, and correct the node's spec.providerID or remove the other instance"},
	reasonChanged:        {kit.Machine, "it is looked at again"},
	reasonInTransition:   {kit.Machine, "wait until Civo is done with it"},
	reasonGPUs:           {kit.Machine, "a machine with GPUs is scarce; look at the instance at Civo, and replace it by hand if it must be"},
	reasonUnauthorized:   {kit.Account, "put a valid API key into {key file}"},
	reasonQuota:          {kit.Account, "raise the account's quota at Civo"},
	reasonRejected:       {kit.Machine, "look at the instance at Civo"},
	reasonUnreachable:    {kit.Passing, "check the network between Drydock and Civo, and Civo's status"},
	reasonUnavailable:    {kit.Passing, "check Civo's status"},
	reasonBadAnswer:      {kit.Setup, "check that apiURL is Civo's API and no proxy answers in its place, and Civo's status"},
	reasonUnknownCluster: {kit.Setup, "check clusterID {cluster} and region {region} in Drydock's configuration"},
	reasonWrongRegion:    {kit.Setup, "check region {region} in Drydock's configuration, and Civo's status"},
	reasonBusy:           {kit.Passing, "it is tried again when that call has ended"},
	reasonWithheld:       {kit.Passing, "the replica that leads now decides again"},
}

// Concern returns what the reason is about.
func (r reason) Concern() kit.Concern { return reasons[r].concern }
