package civo

import "drydock.dev/drydock/remediations/providers/kit"

// Reason says why Civo, or this package before it, did nothing.
type Reason string

// The reasons, all of them.
const (
	NotFound       Reason = "NotFound"       // no such instance in the cluster, or none that can be meant
	Ambiguous      Reason = "Ambiguous"      // more than one instance could be meant
	Changed        Reason = "Changed"        // not the instance that was looked at any more
	InTransition   Reason = "InTransition"   // Civo is building or deleting it already
	GPUs           Reason = "GPUs"           // the instance has GPUs, and is never replaced
	Unauthorized   Reason = "Unauthorized"   // no usable key, or Civo refuses it
	Quota          Reason = "Quota"          // the account's quota is reached
	Rejected       Reason = "Rejected"       // Civo understood, and said no
	Unreachable    Reason = "Unreachable"    // no connection, or no answer to a question
	Unavailable    Reason = "Unavailable"    // Civo answers that it cannot just now
	BadAnswer      Reason = "BadAnswer"      // an answer to a question that is none
	UnknownCluster Reason = "UnknownCluster" // Civo has no such cluster in the region
	WrongRegion    Reason = "WrongRegion"    // Civo has no such region
	Busy           Reason = "Busy"           // an earlier call was still under way
	Withheld       Reason = "Withheld"       // the caller's mayStill said no
)

// reasons say, for each, whom it concerns and what a person can do.
var reasons = map[Reason]struct {
	concern kit.Concern
	advice  string
}{
	NotFound:       {kit.Machine, "compare the node's spec.providerID and name with the instances of cluster {cluster} in region {region} at Civo"},
	Ambiguous:      {kit.Machine, "find out at Civo which instance is this node's, and correct the node's spec.providerID or remove the other instance"},
	Changed:        {kit.Machine, "it is looked at again"},
	InTransition:   {kit.Machine, "wait until Civo is done with it"},
	GPUs:           {kit.Machine, "a machine with GPUs is scarce; look at the instance at Civo, and replace it by hand if it must be"},
	Unauthorized:   {kit.Account, "put a valid API key into {key file}"},
	Quota:          {kit.Account, "raise the account's quota at Civo"},
	Rejected:       {kit.Machine, "look at the instance at Civo"},
	Unreachable:    {kit.Passing, "check the network between Drydock and Civo, and Civo's status"},
	Unavailable:    {kit.Passing, "check Civo's status"},
	BadAnswer:      {kit.Setup, "check that apiURL is Civo's API and no proxy answers in its place, and Civo's status"},
	UnknownCluster: {kit.Setup, "check clusterID {cluster} and region {region} in Drydock's configuration"},
	WrongRegion:    {kit.Setup, "check region {region} in Drydock's configuration, and Civo's status"},
	Busy:           {kit.Passing, "it is tried again when that call is over"},
	Withheld:       {kit.Passing, "the replica that leads now decides again"},
}

// Concern says whom the reason is about.
func (r Reason) Concern() kit.Concern { return reasons[r].concern }
