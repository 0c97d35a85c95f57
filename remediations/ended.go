package remediations

import (
	"time"

	"github.com/prometheus/common/model"
)

// EndedAlert is the name of the alert that Drydock posts to Alertmanager when a repair has ended.
// No policy takes it, because the end of a repair is not a fault.
const EndedAlert = "DrydockRepairEnded"

// EndedLabels are the labels of EndedAlert that Drydock sets. The configuration must not set them.
var EndedLabels = []string{model.AlertNameLabel, "remediation", "node", "policy", "outcome", "repair"}

// Reported reports whether Drydock posts EndedAlert for the entry. It does so only for a repair
// that issued a step.
func (e Entry) Reported() bool {
	return len(e.Steps) > 0 && e.Outcome != OutcomeObserved && !e.Ended.IsZero()
}

// Took returns how long the repair lasted.
func (e Entry) Took() time.Duration { return max(0, e.Ended.Sub(e.Began)) }
