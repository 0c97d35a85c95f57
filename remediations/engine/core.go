package engine

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/signs"
	"drydock.dev/drydock/remediations/targets/location"
	"drydock.dev/drydock/remediations/targets/node"
	"drydock.dev/drydock/remediations/targets/sidecar"
)

// IntentGood is the greatest age of an intent at which the call for that intent may still be made
// (invariant 4 of remediations/doc.go).
const IntentGood = 10 * time.Second

// core holds the times and functions that an engine uses to decide and to check. Each engine has
// its own core. So a test can replace one check of one engine, and show that the engine then breaks
// the invariant of that check (knockout_test.go).
type core struct {
	intentGood time.Duration
	// lookLongest bounds one query of Alertmanager. calling records that an attempt's call is made
	// now, or returns why the call must not be made.
	lookLongest time.Duration
	calling     func(all attempts, attempt string, now time.Time) string
	sampling    signs.Sampling
	// refusesAccount reports whether the provider refuses Drydock's account, so that calls for
	// every machine fail. doubted has, for each provider, the target of the first call that was
	// refused because of the account.
	refusesAccount func(doubted map[string]target, c called) bool

	decide func(*lifecycle.State, time.Time) lifecycle.Decision
	// stood is for tests, and may be nil. It is called when an earlier decision is used again, with
	// the inputs that a new decision would have.
	stood       func(s *lifecycle.State, d lifecycle.Decision, now time.Time)
	mayStillAct func(c *remediations.Config, live *corev1.Node, intent string, signs []signs.Sign, read map[signs.Sign]signs.Testimony) error
	successorOf func(*ledger.Orphan, *remediations.Replacement, []*corev1.Node) *corev1.Node

	decideSidecar  func(*sidecar.State, time.Time) lifecycle.Decision
	mayStillRepair func(c *remediations.Config, live *corev1.Node, key, intent string) error

	decideLocation  func(*location.State, time.Time) lifecycle.Decision
	mayStillMove    func(c *remediations.Config, live *corev1.Node, others []*corev1.Node, intent string) error
	mayStillPutBack func(c *remediations.Config, live *corev1.Node, others []*corev1.Node, id string) error
}

func wholeCore() core {
	return core{
		intentGood: IntentGood, lookLongest: LookLongest, calling: attempts.calling, sampling: signs.LeaseSampling, refusesAccount: refusesAccount,
		decide: node.Decide, mayStillAct: node.MayStillAct, successorOf: node.SuccessorOf,
		decideSidecar: sidecar.Decide, mayStillRepair: lifecycle.MayStillRepair,
		decideLocation: location.Decide, mayStillMove: location.MayStillMove, mayStillPutBack: location.MayStillPutBack,
	}
}
