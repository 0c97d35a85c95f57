package redfish

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/stmcginnis/gofish/schemas"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/providers/kit"
)

// A System that is off may have been switched off on purpose, and a reset would switch it on.
func (k *call) rebootable(s *member) error {
	switch s.PowerState {
	case schemas.OnPowerState:
		return nil
	case schemas.OffPowerState:
		return &kit.Refusal{Why: kit.Machine, Text: "the machine is off, and Drydock reboots only running machines; switch it on unless it was switched off on purpose"}
	case schemas.PoweringOnPowerState, schemas.PoweringOffPowerState:
		return &kit.Refusal{Why: kit.While, Text: "the machine is " + string(s.PowerState) + "; Drydock waits until this has ended"}
	default:
		return &kit.Refusal{Why: kit.Machine, Text: "the BMC does not report whether the machine is on; its power state is " + k.quote(string(s.PowerState))}
	}
}

// kind chooses one of the types that the BMC lists, or else the type that every BMC must support.
// One reboot never becomes two requests, off and on.
func (k *call) kind(m *member, soft bool) (schemas.ResetType, error) {
	var can []schemas.ResetType
	if err := k.safely(func() (err error) { can, err = m.GetSupportedResetTypes(); return err }); err != nil {
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
	return "", k.offersNone(soft, want, can)
}

// A missing soft reset uses up this attempt only (kit.Unable), so the next attempt of the plan can
// be a hard reset.
func (k *call) offersNone(soft bool, want, can []schemas.ResetType) error {
	e := kit.Refuse(kit.Machine, "the BMC offers none of the resets %q for this machine; it offers %s", want, k.quote(fmt.Sprint(can)))
	if soft {
		e.Why = kit.Unable
	}
	return e
}

func (k *call) looked(m *member) (before, error) {
	out := before{System: m.place, Sessions: k.wire.root().Links.Sessions.ID}
	if _, err := k.target(m); err != nil {
		return out, err
	}
	hard, err := k.kind(m, false)
	if err != nil {
		return out, err
	}
	soft, err := k.kind(m, true)
	if e := (*kit.Refusal)(nil); errors.As(err, &e) && e.Why != kit.Unable {
		return out, err
	}
	out.Hard, out.Soft = string(hard), string(soft)
	return out, nil
}

// send sends the reset once.
func (k *call) send(ctx context.Context, m *member, kind schemas.ResetType, mayStill func() error) (remediations.CallOutcome, error) {
	target, err := k.target(m)
	if err != nil {
		return remediations.CallRefused, err
	}
	match := ""
	if k.bmc.way(func(w *way) bool { return w.match }) {
		match = cmp.Or(m.ODataEtag, "*")
	}
	gate := kit.NewGate(ctx, mayStill)
	k.wire.arm(gate, target, match)
	err = k.safely(func() error {
		resp, err := k.api.Post(target, map[string]any{"ResetType": kind}) //nolint:bodyclose // the next line closes it
		schemas.DeferredCleanupHTTPResponse(resp)
		return err
	})
	a, tried := k.wire.outcome()
	switch {
	case gate.Withdraw():
		return remediations.CallRefused, k.unsent(ctx, gate, a, tried, err)
	case a.status == 0:
		return k.doubt("the reset was sent, but no complete answer came", k.secrets.Error(a.err))
	case a.status == http.StatusOK, a.status == http.StatusAccepted, a.status == http.StatusNoContent:
		if a.page {
			return k.doubt(fmt.Sprintf("the answer to the reset, HTTP %d, is not JSON", a.status), nil)
		}
		k.client.allows(k.bmc)
		return remediations.CallAccepted, nil
	case k.learns(a, target): // the BMC did nothing
		return remediations.CallRefused, &kit.Refusal{Why: kit.Unreached, Again: remediations.AskPassing, Text: fmt.Sprintf("the BMC requires another form of the request (HTTP %d to %s); the next call uses it", a.status, a.sent)}
	case a.own && a.refusal():
		return remediations.CallRefused, k.refusedReset(a)
	}
	return k.doubt(fmt.Sprintf("the reset was answered with HTTP %d", a.status), nil)
}

// If the reads before a reset take longer than slow, and the reset is not sent, the error says that
// the BMC is slow.
const slow = 5 * time.Second

func (k *call) unsent(ctx context.Context, gate *kit.Gate, a answer, tried bool, err error) error {
	if no := gate.Forbidden(); no != nil {
		e := &kit.Refusal{Why: kit.Unreached, Text: "the reset was not sent", Cause: k.secrets.Error(no)}
		if took := time.Since(k.began); took > slow {
			e.Text += fmt.Sprintf("; the BMC is slow: reading the machine's state took %s", text.Duration(took.Round(time.Second)))
		}
		return e
	}
	if _, there := k.wire.failure(); !tried && there {
		return k.failed(err)
	}
	cause := a.err
	if ctx.Err() != nil {
		cause = ctx.Err()
	}
	return &kit.Refusal{Why: kit.Unreached, Text: "the reset did not reach the BMC", Cause: k.secrets.Error(cause)}
}

// refusal reports whether the error proves that nothing was done.
func (a answer) refusal() bool {
	switch a.status {
	case http.StatusConflict:
		return a.state // the error names the obstacle
	case http.StatusServiceUnavailable:
		return a.says(starting)
	case http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed,
		http.StatusPreconditionFailed, http.StatusPreconditionRequired, http.StatusUnsupportedMediaType, http.StatusTooManyRequests, http.StatusNotImplemented:
		return true
	}
	return false
}

// refusedReset records a missing right of the account, because the reads of the next survey cannot
// show it.
func (k *call) refusedReset(a answer) *kit.Refusal {
	e := k.explain(a)
	if a.status == http.StatusForbidden && e.NeedsPerson {
		k.client.bars(k.bmc, k.with, false, e.Text)
	}
	return e
}

func (k *call) doubt(what string, cause error) (remediations.CallOutcome, error) {
	return remediations.CallUnknown, &kit.Refusal{Text: what, Cause: cause}
}
