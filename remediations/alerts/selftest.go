package alerts

import "time"

// SelfTestState is how far the alert that always fires gets on its way to Drydock.
type SelfTestState string

const (
	// SelfTestUnknown: nothing can be said, or not yet.
	SelfTestUnknown SelfTestState = "unknown"
	// SelfTestMissing: no Alertmanager that answered has the alert.
	SelfTestMissing SelfTestState = "missing"
	// SelfTestUnrouted: Alertmanager has it, and sends it to others only.
	SelfTestUnrouted SelfTestState = "unrouted"
	// SelfTestNotArrived: Alertmanager sends it here, and it does not arrive.
	SelfTestNotArrived SelfTestState = "not_arrived"
	// SelfTestOK: it is sent here, and arrives.
	SelfTestOK SelfTestState = "ok"
)

// SelfTestStates are all of them.
var SelfTestStates = []SelfTestState{SelfTestUnknown, SelfTestMissing, SelfTestUnrouted, SelfTestNotArrived, SelfTestOK}

// Bad says that Drydock is not connected, and a person must look.
func (s SelfTestState) Bad() bool {
	return s == SelfTestMissing || s == SelfTestUnrouted || s == SelfTestNotArrived
}

// SelfTest is what is said of the connection; package selftest judges it. The zero value: it is not asked for, or was never judged.
type SelfTest struct {
	State SelfTestState `json:"state,omitempty"`
	// Message has no word in it that moves with time, so that the same state is written once.
	Message string    `json:"message,omitempty"`
	Since   time.Time `json:"since,omitzero"`
}
