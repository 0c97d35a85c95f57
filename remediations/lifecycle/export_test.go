package lifecycle

// What the tests of the lifecycle ask that nobody else does.

const WitnessAgain = witnessAgain

var (
	GuardAtLimit        = atLimit
	GuardCancelled      = cancelled
	GuardCooldown       = cooldown
	GuardFleetUnhealthy = fleetUnhealthy
)

func (x *Candidate) Sick() int { return x.sick() }
