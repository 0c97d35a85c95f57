package lifecycle

// This file exports names that only tests need.

const WitnessAgain = witnessAgain

var (
	GuardAtLimit        = atLimit
	GuardCancelled      = cancelled
	GuardCooldown       = cooldown
	GuardFleetUnhealthy = fleetUnhealthy
)

func (x *Candidate) Sick() int { return x.sick() }
