package remediations

import (
	"strconv"
	"strings"
)

// Attempt is one attempt of a step. In JSON, and in what people read, it is "reboot:1". It is read from there once, with the record or
// the history that has it.
type Attempt struct {
	// Name is the remediation's, Number counts from 1.
	Name   string
	Number int
	// text is what was read, where that is not of this form: what Drydock did not write stays as it is.
	text string
}

// Issued is the attempt that the reference points at, wherever its step is in the plan.
func (s StepRef) Issued() Attempt { return Attempt{Name: s.Name, Number: s.Attempt} }

func (a Attempt) String() string {
	switch {
	case a.text != "":
		return a.text
	case a.Number == 0:
		return a.Name
	}
	return a.Name + ":" + strconv.Itoa(a.Number)
}

// MarshalText is for JSON.
func (a Attempt) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText takes any text: an attempt is no reason to forget a history.
func (a *Attempt) UnmarshalText(text []byte) error {
	*a = AttemptOf(string(text))
	return nil
}

// AttemptOf reads an attempt as people read it.
func AttemptOf(text string) Attempt {
	name, number, _ := strings.Cut(text, ":")
	a := Attempt{Name: name}
	a.Number, _ = strconv.Atoi(number) // what is no number shows in the text
	if a.String() != text {
		a.text = text
	}
	return a
}

// Attempts are those of a repair, oldest first.
type Attempts []Attempt

// Texts are the attempts as people read them.
func (all Attempts) Texts() []string {
	out := make([]string, len(all))
	for i, a := range all {
		out[i] = a.String()
	}
	return out
}

func (all Attempts) String() string { return strings.Join(all.Texts(), ", ") }
