package remediations

import (
	"time"

	"github.com/prometheus/common/model"
)

// EndedAlert is the alert that says that a repair has ended. Drydock posts it and never takes it:
// an end is not a fault.
const EndedAlert = "DrydockRepairEnded"

// EndedLabels are the labels of that alert that Drydock alone sets.
var EndedLabels = []string{model.AlertNameLabel, "remediation", "node", "policy", "outcome", "repair"}

// Reported reports whether people receive this end: the repair took a step.
func (e Entry) Reported() bool {
	return len(e.Steps) > 0 && e.Outcome != OutcomeObserved && !e.Ended.IsZero()
}

// Took is how long the repair lasted.
func (e Entry) Took() time.Duration { return max(0, e.Ended.Sub(e.Began)) }
