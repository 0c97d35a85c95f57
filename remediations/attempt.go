package remediations

import (
	"strconv"
	"strings"
)

// Attempt is one attempt of a step, in JSON and in messages "reboot:1".
type Attempt struct {
	// Number counts from 1.
	Name   string
	Number int
	// The original text if it does not have the form "reboot:1", so that it is written unchanged.
	text string
}

// Issued returns the attempt that s names.
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

// MarshalText returns the same text as String.
func (a Attempt) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText accepts any text: an unknown attempt must not make a history unreadable.
func (a *Attempt) UnmarshalText(text []byte) error {
	*a = AttemptOf(string(text))
	return nil
}

// AttemptOf parses an attempt from its text.
func AttemptOf(text string) Attempt {
	name, number, _ := strings.Cut(text, ":")
	a := Attempt{Name: name}
	a.Number, _ = strconv.Atoi(number) // on an error the comparison below keeps the whole text
	if a.String() != text {
		a.text = text
	}
	return a
}

// Attempts are the attempts of a repair, oldest first.
type Attempts []Attempt

// Texts returns the attempts as texts.
func (all Attempts) Texts() []string {
	out := make([]string, len(all))
	for i, a := range all {
		out[i] = a.String()
	}
	return out
}

func (all Attempts) String() string { return strings.Join(all.Texts(), ", ") }
