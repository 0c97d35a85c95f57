package kit

import (
	"errors"
	"fmt"

	"drydock.dev/drydock/internal/redact"
	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/signs"
)

// longest bounds the text about one call.
const longest = 900

// Reporter turns the errors of one provider into sentences for people.
type Reporter struct {
	// Secrets are what no sentence shows.
	Secrets *redact.Keyring
	// Otherwise is the concern of an error that is not a Refusal.
	Otherwise Concern
}

// Explained returns the error as a Refusal whose text has its cause, and no secrets.
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

// Sentence returns the error as a sentence on one line, of bounded length. It begins with what failed,
// for example "the Machine of node x".
func (r Reporter) Sentence(err error, format string, args ...any) *Refusal {
	out := r.Explained(err)
	out.Text = text.Line(r.Secrets.Hide(fmt.Sprintf(format, args...)+": "+out.Text), longest)
	return out
}

// Testimony returns what one that knows says of a machine's power, or why it does not say.
func (r Reporter) Testimony(who, power string, answer signs.Answer, err error) signs.Testimony {
	if err != nil {
		return signs.Testimony{Answer: signs.Unknown, Saw: r.Sentence(err, "%s did not say whether the machine is on", who).Text}
	}
	return signs.Testimony{Answer: answer, Saw: fmt.Sprintf("%s says that the machine is %s", who, power)}
}

// Ended returns the outcome of a call, with its error as a sentence: doing says what was tried,
// with the node. If the outcome is unknown, perhaps says what may have been done.
func (r Reporter) Ended(outcome remediations.CallOutcome, err error, doing, perhaps string) (remediations.CallOutcome, error) {
	switch {
	case err == nil:
		return outcome, nil
	case outcome == remediations.CallUnknown:
		return outcome, r.Sentence(err, "%s: %s", doing, perhaps)
	}
	return outcome, r.Sentence(err, "%s: nothing was done", doing)
}
