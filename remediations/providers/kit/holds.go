package kit

import (
	"slices"
	"strings"
)

// Each concern lasts longer, or affects more machines, than those before it.
var stays = []Concern{While, Passing, Machine, Setup}

// Holds collects all reasons that forbid a step now, so that people see them together.
type Holds []*Refusal

// If adds a reason to h if holds is true. why is its Concern.
func (h *Holds) If(holds bool, why Concern, format string, args ...any) {
	if holds {
		*h = append(*h, Refuse(why, format, args...))
	}
}

// Err returns one error with all reasons, or nil if there are none. It has the worst concern of all
// reasons.
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
