package civo

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

// Concern says whom a reason is about, and so what else it stops.
type Concern string

// The concerns, all of them.
const (
	// OneMachine: other machines may well be repaired.
	OneMachine Concern = "machine"
	// Setup: clusterID, region or apiURL are wrong, so it is the same for every machine until a person corrects them.
	Setup Concern = "setup"
	// Account: the key or the quota. It is the same for every machine until a person acts, and asking on does harm:
	// the error is an *AccountError.
	Account Concern = "account"
	// Passing: the same call may succeed in a moment.
	Passing Concern = "passing"
)

// reasons say, for each, whom it concerns and what a person can do.
var reasons = map[Reason]struct {
	concern Concern
	advice  string
}{
	NotFound:       {OneMachine, "compare the node's spec.providerID and name with the instances of cluster {cluster} in region {region} at Civo"},
	Ambiguous:      {OneMachine, "find out at Civo which instance is this node's, and correct the node's spec.providerID or remove the other instance"},
	Changed:        {OneMachine, "it is looked at again"},
	InTransition:   {OneMachine, "wait until Civo is done with it"},
	GPUs:           {OneMachine, "a machine with GPUs is scarce; look at the instance at Civo, and replace it by hand if it must be"},
	Unauthorized:   {Account, "put a valid API key into {key file}"},
	Quota:          {Account, "raise the account's quota at Civo"},
	Rejected:       {OneMachine, "look at the instance at Civo"},
	Unreachable:    {Passing, "check the network between Drydock and Civo, and Civo's status"},
	Unavailable:    {Passing, "check Civo's status"},
	BadAnswer:      {Setup, "check that apiURL is Civo's API and no proxy answers in its place, and Civo's status"},
	UnknownCluster: {Setup, "check clusterID {cluster} and region {region} in Drydock's configuration"},
	WrongRegion:    {Setup, "check region {region} in Drydock's configuration, and Civo's status"},
	Busy:           {Passing, "it is tried again when that call is over"},
	Withheld:       {Passing, "the replica that leads now decides again"},
}

// Concern says whom the reason is about.
func (r Reason) Concern() Concern { return reasons[r].concern }
