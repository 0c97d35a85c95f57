package redfish

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/stmcginnis/gofish/schemas"

	"drydock.dev/drydock/internal/lastlook"
	"drydock.dev/drydock/remediations"
)

// rebootable says why the System cannot be rebooted; nil: it can. One that is off may have been switched off on purpose, and a reset
// would switch it on.
func (k *call) rebootable(s *schemas.ComputerSystem) error {
	switch s.PowerState {
	case schemas.OnPowerState:
		return nil
	case schemas.OffPowerState:
		return &callError{why: forMachine, text: "the machine is off, and only what runs is rebooted; switch it on if nobody switched it off on purpose"}
	case schemas.PoweringOnPowerState, schemas.PoweringOffPowerState:
		return &callError{why: forNow, text: "the machine is " + string(s.PowerState) + "; wait until that is over"}
	default:
		return &callError{why: forMachine, text: "the BMC does not say whether the machine is on, but " + k.quote(string(s.PowerState))}
	}
}

// kind chooses how to reset. A BMC that lists what it can do is believed; one that lists nothing is asked for what every one must
// have. Two requests, off and on, are never made of one reboot.
func (k *call) kind(s *schemas.ComputerSystem, soft bool) (schemas.ResetType, error) {
	var can []schemas.ResetType
	if err := k.safely(func() (err error) { can, err = s.GetSupportedResetTypes(); return err }); err != nil {
		return "", k.failed(err)
	}
	want := []schemas.ResetType{schemas.ForceRestartResetType, schemas.PowerCycleResetType}
	if soft {
		want = []schemas.ResetType{schemas.GracefulRestartResetType}
	} else if len(can) == 0 {
		can = want[:1]
	}
	for _, one := range want {
		if slices.Contains(can, one) {
			return one, nil
		}
	}
	return "", &callError{why: forMachine, text: fmt.Sprintf("the BMC offers none of the resets %q for this machine, but %s", want, k.quote(fmt.Sprint(can)))}
}

// send sends the reset, once, and says what became of it.
func (k *call) send(ctx context.Context, s *schemas.ComputerSystem, kind schemas.ResetType, mayStill func() error) (remediations.CallOutcome, error) {
	gate := lastlook.New(ctx, mayStill)
	k.wire.arm(gate, s.ODataID)
	err := k.safely(func() error { _, err := s.Reset(kind); return err })
	a, tried := k.wire.outcome()
	switch {
	case gate.Withdraw():
		if no := gate.Forbidden(); no != nil {
			return remediations.CallRefused, &callError{why: forNow, text: "the reset was not sent", cause: k.secrets.Error(no)}
		}
		if !tried {
			if _, there := k.wire.failure(); there {
				return remediations.CallRefused, k.failed(err)
			}
			return remediations.CallRefused, &callError{why: forMachine, text: "the BMC offers no reset of the system", cause: k.secrets.Error(err)}
		}
		cause := a.err
		if ctx.Err() != nil {
			cause = ctx.Err()
		}
		return remediations.CallRefused, &callError{why: forNow, text: "the reset did not reach the BMC", cause: k.secrets.Error(cause)}
	case a.status == 0:
		return k.doubt("the reset left, and no whole answer came", k.secrets.Error(a.err))
	case a.status == http.StatusOK, a.status == http.StatusAccepted, a.status == http.StatusNoContent:
		if a.page {
			return k.doubt(fmt.Sprintf("the answer to the reset, HTTP %d, is no JSON", a.status), nil)
		}
		return remediations.CallAccepted, nil
	case a.own && a.refusal():
		return remediations.CallRefused, k.refusedReset(a)
	}
	if a.status == http.StatusUnauthorized || a.status == http.StatusForbidden {
		k.client.remember(k.with, k.machine.Node)
	}
	return k.doubt(fmt.Sprintf("the reset was answered with HTTP %d", a.status), nil)
}

// refusal says whether the BMC's own error means that certainly nothing was done.
func (a answer) refusal() bool {
	switch a.status {
	case http.StatusConflict:
		return a.state // the error says what is in the way
	case http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed,
		http.StatusPreconditionFailed, http.StatusUnsupportedMediaType, http.StatusTooManyRequests, http.StatusNotImplemented:
		return true
	}
	return false
}

func (k *call) refusedReset(a answer) *callError {
	e := k.explain(a)
	if e.why == forAccount {
		k.client.remember(k.with, k.machine.Node)
	}
	return e
}

func (k *call) doubt(what string, cause error) (remediations.CallOutcome, error) {
	return remediations.CallUnknown, &callError{text: what, cause: cause}
}
