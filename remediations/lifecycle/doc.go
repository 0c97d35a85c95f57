// Package lifecycle decides what is to be done about a target now, whatever its kind: the guards in their order, the phases that a
// repair goes through, and the proof of its cure. What a record, a policy, the ledger and the fleet are, package remediations says,
// and its documentation draws the life of a repair. It is as pure: the same State and time give the same Decision.
package lifecycle
