package kit_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/redact"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/providers/kit"
	"drydock.dev/drydock/remediations/signs"
)

// TestASentenceHasItsCauseOnce, without secrets, also if it became part of another sentence.
func TestASentenceHasItsCauseOnce(t *testing.T) {
	r := kit.Reporter{Secrets: &redact.Keyring{Mark: "[secret]"}, Otherwise: kit.Unreached}
	r.Secrets.Add("horse")
	cause := errors.New("no route for horse")
	inner := r.Sentence(cause, "reading Machine %s", "one")
	require.EqualError(t, inner, "reading Machine one: the call failed (no route for [secret])")
	outcome, err := r.Ended(remediations.CallRefused, inner, "rebooting node n", "the call may have been done")
	require.Equal(t, remediations.CallRefused, outcome)
	require.EqualError(t, err, "rebooting node n: nothing was done: reading Machine one: the call failed (no route for [secret])")
	require.ErrorIs(t, err, cause)
	require.ErrorIs(t, err, engine.ErrLater, "its concern is the reporter's")
	_, err = r.Ended(remediations.CallUnknown, kit.Refuse(kit.Machine, "HTTP 500"), "rebooting node n", "the call may have been done")
	require.EqualError(t, err, "rebooting node n: the call may have been done: HTTP 500")
	_, err = r.Ended(remediations.CallAccepted, nil, "rebooting node n", "the call may have been done")
	require.NoError(t, err)
}

// TestWhatOneSaysOfAMachinesPower: the report of a power state is a testimony. An error is an
// unknown answer.
func TestWhatOneSaysOfAMachinesPower(t *testing.T) {
	r := kit.Reporter{Secrets: &redact.Keyring{}, Otherwise: kit.Unreached}
	require.Equal(t, signs.Testimony{Answer: signs.Ill, Saw: "the BMC says that the machine is off"}, r.Testimony("the BMC", "off", signs.Ill, nil))
	require.Equal(t, signs.Testimony{Answer: signs.Unknown, Saw: "the BMC did not say whether the machine is on: it is busy"},
		r.Testimony("the BMC", "off", signs.Ill, kit.Refuse(kit.While, "it is busy")))
}

// TestAllHoldsAreNamed: the error of several holds has the worst concern.
func TestAllHoldsAreNamed(t *testing.T) {
	for _, c := range []struct {
		whys []kit.Concern
		want kit.Concern
	}{
		{[]kit.Concern{kit.While}, kit.While},
		{[]kit.Concern{kit.While, kit.Passing}, kit.Passing},
		{[]kit.Concern{kit.Machine, kit.While, kit.Passing}, kit.Machine},
		{[]kit.Concern{kit.While, kit.Setup, kit.Machine}, kit.Setup},
	} {
		var all kit.Holds
		all.If(false, kit.Setup, "absent")
		require.NoError(t, all.Err())
		text := ""
		for _, why := range c.whys {
			all.If(true, why, "hold %s", why)
			text += "; hold " + string(why)
		}
		var e *kit.Refusal
		require.ErrorAs(t, all.Err(), &e)
		require.Equal(t, c.want, e.Why)
		require.Equal(t, text[len("; "):], e.Text)
	}
}
