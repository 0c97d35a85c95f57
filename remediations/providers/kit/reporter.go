package kit

import (
	"errors"
	"fmt"

	"drydock.dev/drydock/internal/redact"
	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/signs"
)

// longest is in bytes.
const longest = 900

// Reporter turns the errors of one provider into sentences for people, without secrets.
type Reporter struct {
	// Secrets are removed from each sentence.
	Secrets *redact.Keyring
	// Otherwise is the Concern of an error that is not a Refusal.
	Otherwise Concern
}

// Explained returns the error as a Refusal whose text includes the cause, without secrets.
func (r Reporter) Explained(err error) *Refusal {
	var e *Refusal
	if !errors.As(err, &e) {
		e = &Refusal{Why: r.Otherwise, Text: "the call failed", Cause: r.Secrets.Error(err)}
	}
	out := *e
	if out.Cause != nil && !out.whole {
		out.Text += " (" + out.Cause.Error() + ")"
	}
	out.Text, out.whole = r.Secrets.Hide(out.Text), true
	return &out
}

// Sentence returns the error as a Refusal with one line of bounded length. The formatted text comes
// first and names what failed, for example "the Machine of node x".
func (r Reporter) Sentence(err error, format string, args ...any) *Refusal {
	out := r.Explained(err)
	out.Text = text.Line(r.Secrets.Hide(fmt.Sprintf(format, args...)+": "+out.Text), longest)
	return out
}

// Testimony returns a report about a machine's power. who is the source of the report, and power is
// the state as a word. With an error the answer is unknown.
func (r Reporter) Testimony(who, power string, answer signs.Answer, err error) signs.Testimony {
	if err != nil {
		return signs.Testimony{Answer: signs.Unknown, Saw: r.Sentence(err, "%s did not say whether the machine is on", who).Text}
	}
	return signs.Testimony{Answer: answer, Saw: fmt.Sprintf("%s says that the machine is %s", who, power)}
}

// Ended returns the outcome of a call, and its error as a sentence. doing is the action, for
// example "rebooting node x". perhaps says what may have happened, if the outcome is unknown.
func (r Reporter) Ended(outcome remediations.CallOutcome, err error, doing, perhaps string) (remediations.CallOutcome, error) {
	switch {
	case err == nil:
		return outcome, nil
	case outcome == remediations.CallUnknown:
		return outcome, r.Sentence(err, "%s: %s", doing, perhaps)
	}
	return outcome, r.Sentence(err, "%s: nothing was done", doing)
}
