package scene

import (
	"time"

	"pgregory.net/rapid"

	"drydock.dev/drydock/remediations"
)

// These generators draw random values of each type, for property tests.
var (
	AnyText = rapid.StringN(0, 40, 120)
	AnyID   = rapid.StringMatching(`[a-z0-9]{6}`)
	AnyTime = rapid.Custom(func(t *rapid.T) time.Time {
		return time.Unix(rapid.Int64Range(1_600_000_000, 4_000_000_000).Draw(t, "unix"), 0).UTC()
	})
	AnyStep = rapid.Custom(func(t *rapid.T) remediations.StepRef {
		return remediations.StepRef{
			Index: rapid.IntRange(0, 9).Draw(t, "index"), Name: rapid.SampledFrom(remediations.Registry(nil).Names()).Draw(t, "name"),
			Attempt: rapid.IntRange(1, 9).Draw(t, "attempt"),
		}
	})
	AnyName = rapid.StringMatching(`[a-z0-9]{1,20}`)
	AnyMove = rapid.Custom(func(t *rapid.T) remediations.Move {
		m := remediations.Move{Location: "eu", From: AnyName.Draw(t, "from"), Before: map[string]*string{}}
		m.To = m.From + "2"
		for range rapid.IntRange(1, 4).Draw(t, "keys") {
			text := AnyText.Draw(t, "before")
			m.Before[AnyName.Draw(t, "node")] = map[bool]*string{true: &text}[rapid.Bool().Draw(t, "had it")]
		}
		return m
	})
	AnyIntent = rapid.Custom(func(t *rapid.T) *remediations.Intent {
		return &remediations.Intent{
			ID: AnyID.Draw(t, "id"), At: AnyTime.Draw(t, "at"), BootID: AnyText.Draw(t, "boot"), UID: AnyText.Draw(t, "uid"),
			ProviderID: AnyText.Draw(t, "providerID"), Why: AnyText.Draw(t, "why"),
			Outcome: rapid.SampledFrom([]remediations.CallOutcome{"", remediations.CallAccepted, remediations.CallRefused, remediations.CallUnknown}).Draw(t, "outcome"),
			Before:  rapid.SampledFrom([]remediations.Before{"", `{}`, `{"instance":"i-1","newest":"2026-11-21T12:00:00Z"}`, `{"a":{"b":["<>&"]}}`}).Draw(t, "before"),
		}
	})
)

var AnyRecord = rapid.Custom(func(t *rapid.T) *remediations.Record {
	r := &remediations.Record{
		V: remediations.RecordVersion, ID: AnyID.Draw(t, "id"), Policy: AnyName.Draw(t, "policy"),
		Phase: rapid.SampledFrom([]remediations.Phase{remediations.PhasePending, remediations.PhaseActing, remediations.PhaseVerifying, remediations.PhaseExhausted}).Draw(t, "phase"),
		Step:  AnyStep.Draw(t, "step"), Began: AnyTime.Draw(t, "began"), Since: AnyTime.Draw(t, "since"), Deadline: AnyTime.Draw(t, "deadline"),
		Done: rapid.SliceOfN(rapid.Map(AnyStep, remediations.StepRef.Issued), 0, 5).Draw(t, "done"),
	}
	if len(r.Done) == 0 {
		r.Done = nil
	}
	if rapid.Bool().Draw(t, "requested") {
		r.Cause.Request = "remediation/reboot"
	} else {
		r.Cause.Alert = AnyID.Draw(t, "alert")
	}
	if r.Phase != remediations.PhasePending || rapid.Bool().Draw(t, "acted") {
		r.Intent = AnyIntent.Draw(t, "intent")
	}
	if remediations.Shipped()[r.Step.Name].Target == "leader" {
		r.Location = "eu"
		if r.Intent != nil {
			r.Moves = rapid.SliceOfN(AnyMove, 1, remediations.MaxMoves).Draw(t, "moves")
			r.Intent.Successor = r.Moves[len(r.Moves)-1].To
			if r.Phase != remediations.PhaseVerifying && rapid.Bool().Draw(t, "goes back") {
				back := AnyTime.Draw(t, "back")
				r.Back = &back
			}
		}
	}
	if rapid.Bool().Draw(t, "held") {
		r.Hold = &remediations.Hold{Reason: rapid.SampledFrom(remediations.Reasons).Draw(t, "reason"), Message: AnyText.Draw(t, "message"), Since: AnyTime.Draw(t, "holdSince")}
		if rapid.Bool().Draw(t, "ends") {
			until := AnyTime.Draw(t, "until")
			r.Hold.Until = &until
		}
	}
	if rapid.Bool().Draw(t, "cordoned") {
		r.Undo = []remediations.Undo{{Kind: remediations.UndoCordon, At: AnyTime.Draw(t, "undoAt")}}
	}
	return r
})
