package kit

import (
	"slices"
	"strings"
)

// stays lists the concerns of holds from the mildest to the worst. A later concern lasts longer, or
// affects more machines.
var stays = []Concern{While, Passing, Machine, Setup}

// Holds collects everything that forbids a step, so that people see all obstacles at once.
type Holds []*Refusal

// If adds a hold if the condition holds.
func (h *Holds) If(holds bool, why Concern, format string, args ...any) {
	if holds {
		*h = append(*h, Refuse(why, format, args...))
	}
}

// Err returns one error that names all holds, or nil if there are none. The error has the worst
// concern of all holds.
func (h Holds) Err() error {
	if len(h) == 0 {
		return nil
	}
	e, texts := &Refusal{Why: While}, []string{}
	for _, one := range h {
		texts = append(texts, one.Text)
		if slices.Index(stays, one.Why) > slices.Index(stays, e.Why) {
			e.Why = one.Why
		}
	}
	e.Text = strings.Join(texts, "; ")
	return e
}
