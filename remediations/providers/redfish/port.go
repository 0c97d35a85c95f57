package redfish

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stmcginnis/gofish/schemas"

	"drydock.dev/drydock/internal/config/section"
	"drydock.dev/drydock/internal/redact"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/providers/kit"
	"drydock.dev/drydock/remediations/signs"
)

// Rebooter resets the machine through its BMC. A soft reboot asks the machine's operating system to
// restart.
type Rebooter struct{ *Client }

// Act implements engine.Actuator.
func (c Rebooter) Act(ctx context.Context, m engine.Machine, mayStill func() error) (remediations.CallOutcome, error) {
	outcome := remediations.CallRefused
	kept := keptBy(m.Before)
	err := c.with(ctx, m, kept, true, func(k *call, s *member) (err error) {
		kind := schemas.ResetType(kept.Hard)
		switch {
		case kept.System == "":
			kind, err = k.kind(s, m.Soft)
		case m.Soft && kept.Soft == "":
			err = k.offersNone(true, []schemas.ResetType{schemas.GracefulRestartResetType}, []schemas.ResetType{kind})
		case m.Soft:
			kind = schemas.ResetType(kept.Soft)
		}
		if err != nil {
			return err
		}
		outcome, err = k.send(ctx, s, kind, mayStill)
		return err
	})
	return bmcs.Ended(outcome, err, fmt.Sprintf("rebooting node %q through its BMC", m.Node), "the reboot may have been done; treat it as done, and check whether the machine boots")
}

// Survey reads the machine's state before the intent is written on the Node. So a reset that the
// BMC would refuse uses up no attempt.
func (c Rebooter) Survey(ctx context.Context, m engine.Machine) remediations.Survey {
	var found before
	err := c.with(ctx, m, before{}, true, func(k *call, s *member) (err error) {
		found, err = k.looked(s)
		return err
	})
	if err != nil {
		return c.survey(bmcs.Sentence(err, "the BMC of node %q", m.Node))
	}
	if s := remediations.Keeping(found); s.Trouble == "" {
		return s
	}
	return remediations.Survey{} // the addresses are too long for the record, so Act reads them again
}

// keptBy returns zero without a record, or if the record has a value that a survey never writes.
// Others may write the Node's annotations, so the values must be checked.
func keptBy(b remediations.Before) before {
	var kept before
	hard := []schemas.ResetType{schemas.ForceRestartResetType, schemas.PowerCycleResetType}
	soft := []schemas.ResetType{"", schemas.GracefulRestartResetType}
	if b.Read(&kept) != nil || !strings.HasPrefix(kept.System, "/") || !slices.Contains(hard, schemas.ResetType(kept.Hard)) || !slices.Contains(soft, schemas.ResetType(kept.Soft)) {
		return before{}
	}
	return kept
}

// Testify reports whether the machine is powered. If the BMC shows another machine, the answer is
// unknown.
func (c Rebooter) Testify(ctx context.Context, m engine.Machine, _ signs.Sign) signs.Testimony {
	t := signs.Testimony{Answer: signs.Unknown}
	err := c.with(ctx, m, before{}, false, func(k *call, s *member) error {
		t.Saw = "the BMC says that the machine's power is " + k.quote(string(s.PowerState))
		switch s.PowerState {
		case schemas.OnPowerState:
			t.Answer = signs.Well
		case schemas.OffPowerState:
			t.Answer = signs.Ill
		default: // between two states, or an unknown one
		}
		return nil
	})
	if err != nil {
		t.Saw = bmcs.Sentence(err, "the BMC did not say whether the machine is on").Text
	}
	return t
}

// If kept names the System from the survey, only that System is read. If on is true, with also
// checks that Drydock may reset the machine, and that the machine is on.
func (c Rebooter) with(ctx context.Context, m engine.Machine, kept before, on bool, use func(*call, *member) error) error {
	if why := metal3(m.ProviderID); on && why != "" {
		return &kit.Refusal{Why: kit.Machine, Text: why}
	}
	k, err := c.open(m)
	if err != nil {
		return err
	}
	want, err := k.bmc.wanted(m)
	pinned := want.serial != "" || k.bmc.uuid != (section.UUID{}) // the configuration outranks what another Node's kubelet reports
	if err == nil && !pinned {
		err = c.alone(ctx, m, want.uuid)
	}
	if err != nil {
		return k.clean(err)
	}
	if err := k.bmc.turn.Acquire(ctx, 1); err != nil {
		return &kit.Refusal{Why: kit.Unreached, Text: "an earlier call to the BMC has not ended: " + err.Error(), Cause: err}
	}
	defer k.close(ctx)
	k.began = time.Now()
	if kept.System != "" {
		k.wire.keeps(kept)
	}
	if err := k.connect(ctx); err != nil {
		return k.clean(err)
	}
	s, err := k.find(want, kept)
	if err == nil {
		c.takes(k.bmc, k.with)
	}
	if err == nil && on {
		err = k.rebootable(s)
	}
	if err == nil {
		err = use(k, s)
	}
	return k.clean(err)
}

func (k *call) find(want wanted, kept before) (*member, error) {
	if kept.System != "" {
		return k.same(want, kept)
	}
	return k.system(want)
}

func (k *call) clean(err error) error {
	if err == nil {
		return nil
	}
	return kit.Reporter{Secrets: k.secrets, Otherwise: kit.Unreached}.Explained(err)
}

// The Keyring is empty, because clean has already removed the secrets.
var bmcs = kit.Reporter{Secrets: &redact.Keyring{}, Otherwise: kit.Unreached}
