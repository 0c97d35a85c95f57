package engine

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/targets/apiserver"
	"drydock.dev/drydock/remediations/targets/location"
	"drydock.dev/drydock/remediations/targets/node"
	"drydock.dev/drydock/remediations/targets/sidecar"
)

// intentGood is how long after its intent a call may still go out: invariant 4.
const intentGood = 10 * time.Second

// core is what an engine, or a rescue, asks package remediations. Each has its own, so that a test can take a clause of what
// must always hold away from one of them, and see the check of that invariant speak: knockout_test.go.
type core struct {
	intentGood time.Duration

	decide      func(*remediations.State, time.Time) remediations.Decision
	mayStillAct func(c *remediations.Config, live *corev1.Node, intent string, signs []remediations.Sign, read map[remediations.Sign]remediations.Testimony) error
	admit       func(annotations map[string]string, a remediations.Alert) (drop []string, ok bool)
	successorOf func(*remediations.Orphan, *remediations.Replacement, []*corev1.Node) *corev1.Node

	decidePlain    func(*remediations.PlainState, time.Time) remediations.Decision
	decideSidecar  func(*sidecar.State, time.Time) remediations.Decision
	mayStillRepair func(c *remediations.Config, live *corev1.Node, key, intent string) error

	decideLocation  func(*location.State, time.Time) remediations.Decision
	mayStillMove    func(c *remediations.Config, live *corev1.Node, others []*corev1.Node, intent string) error
	mayStillPutBack func(c *remediations.Config, live *corev1.Node, others []*corev1.Node, id string) error

	decideAPIServer func(*apiserver.State, time.Time) apiserver.Decision
	mayStillRescue  func(j apiserver.RescueJournal, attempt string, now time.Time) error
}

func wholeCore() core {
	return core{
		intentGood: intentGood,
		decide:     node.Decide, mayStillAct: node.MayStillAct, admit: remediations.Admit, successorOf: node.SuccessorOf,
		decidePlain: remediations.DecidePlain, decideSidecar: sidecar.Decide, mayStillRepair: remediations.MayStillRepair,
		decideLocation: location.Decide, mayStillMove: location.MayStillMove, mayStillPutBack: location.MayStillPutBack,
		decideAPIServer: apiserver.Decide, mayStillRescue: apiserver.MayStillRescue,
	}
}
