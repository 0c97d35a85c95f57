// Package lifecycle decides what to do about a target of any kind now: the guards in their order,
// the phases of a repair, and the proof of its cure. Package remediations defines records,
// policies, the ledger and the fleet, and its documentation draws the life of a repair. This
// package is pure, too: the same State and time give the same Decision.
package lifecycle
