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

// IntentGood is how old an intent may be when its call is made (invariant 4 of
// remediations/doc.go).
const IntentGood = 10 * time.Second

// core has the parts that a test can replace in one engine, to show that the engine then breaks an
// invariant (knockout_test.go).
type core struct {
	intentGood time.Duration
	// lookLongest bounds one query of Alertmanager. calling returns why a call must not be made.
	lookLongest time.Duration
	calling     func(all attempts, attempt string, now time.Time) string
	sampling    signs.Sampling
	// doubted has, for each provider, the target of the first call that was refused because of the
	// account.
	refusesAccount func(doubted map[string]target, c called) bool

	decide func(*lifecycle.State, time.Time) lifecycle.Decision
	// stood is for tests, and may be nil. It is called when an earlier decision is used again.
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
