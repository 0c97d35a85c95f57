// Package lifecycle decides what to do now about a target of any kind. It has the guards in their
// order, the phases of a repair, and the proof of its cure. The documentation of package
// remediations draws the life of a repair. The package is pure: the same State and time give the
// same Decision.
package lifecycle
