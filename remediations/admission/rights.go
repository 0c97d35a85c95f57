package admission

import (
	"errors"
	"fmt"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
)

// Rights that people's words ask for, beside the right to patch nodes, are verbs on a resource that no API serves: RBAC grants
// them like any other.
const (
	RightsGroup    = "drydock.dev"
	RightsResource = "repairs"
)

// entitled are the annotations that ask for a right, each with its verb. To pause a node, to exclude it, or to remove a person's
// key asks for none: this only stops repairs, or gives the node back to the guards. To remove a key of Drydock's own asks for
// resetVerb.
var entitled = []struct {
	key, verb string
	// stops: it makes Drydock do less. Where nobody can say who has the right, it is let through: a repair that should be
	// stopped is worse than one that was stopped by the wrong person.
	stops bool
}{
	{key: remediations.RequestKey, verb: "request"},
	{key: remediations.ApproveKey, verb: "approve"},
	{key: remediations.ResetKey, verb: resetVerb},
	{key: remediations.CancelKey, verb: "cancel", stops: true},
	{key: remediations.BreakGlassKey, verb: "break", stops: true},
}

// resetVerb is the right to have a repair, and what Drydock remembers of earlier ones, forgotten.
const resetVerb = "reset"

// ErrNotAsked is Change.May's error where the API server was not even asked, because too many questions are open or the user is
// too large. Strangers can cause that, so no word is let through for it.
var ErrNotAsked = errors.New("the API server is not asked")

// RightVerbs are the verbs that exist.
func RightVerbs() []string {
	out := make([]string, len(entitled))
	for i, w := range entitled {
		out[i] = w.verb
	}
	return out
}

// VerbFor is the verb that setting the annotation asks for; empty: none.
func VerbFor(key string) string {
	for _, w := range entitled {
		if w.key == key {
			return w.verb
		}
	}
	return ""
}

// rightMissing: the right to patch nodes is that of every network plugin. To have a machine replaced is another one, and so is
// to have Drydock forget how often it has repaired a machine.
func rightMissing(ch *Change, _ *repair) *violation {
	if ch.ofNode() || ch.May == nil || ch.New == nil {
		return nil
	}
	for _, w := range entitled {
		if ch.says(w.key) {
			if v := ch.lacks(w.verb, w.key, "set on", w.stops); v != nil {
				return v
			}
		}
	}
	if _, removed := ch.keys(remediations.Owned); len(removed) > 0 {
		return ch.lacks(resetVerb, removed[0], "removed from", false)
	}
	return nil
}

// lacks says that the user may not set or remove the key; nil: the user may. stops: the user may where nobody can say.
func (ch *Change) lacks(verb, key, done string, stops bool) *violation {
	allowed, err := ch.May(verb)
	switch {
	case err != nil && stops && !errors.Is(err, ErrNotAsked): // unchecked says so
	case err != nil:
		return &violation{reason: ReasonRightUnknown, what: key, message: fmt.Sprintf(
			"%s is not %s node %s: whether %s has the verb %q on %s.%s could not be checked: %s; try again",
			key, done, ch.New.Name, text.Line(ch.User, 120), verb, RightsResource, RightsGroup, text.Line(err.Error(), 200))}
	case !allowed:
		return &violation{reason: ReasonRightMissing, what: key, message: fmt.Sprintf(
			"%s is not %s node %s: %s lacks the verb %q on %s.%s; the right to patch nodes is not enough. The chart's ClusterRole RELEASE-operator has it: ask an administrator to bind that role",
			key, done, ch.New.Name, text.Line(ch.User, 120), verb, RightsResource, RightsGroup)}
	}
	return nil
}

// unchecked says which word was let through though nobody could say who has the right; empty: none.
func (ch *Change) unchecked() string {
	for _, w := range entitled {
		if !w.stops || ch.ofNode() || !ch.says(w.key) {
			continue
		}
		if _, err := ch.May(w.verb); err != nil {
			return fmt.Sprintf("%s is set although the verb %q on %s.%s could not be checked (%s): it only stops repairs",
				w.key, w.verb, RightsResource, RightsGroup, text.Line(err.Error(), 200))
		}
	}
	return ""
}

// says: the change sets the annotation, or alters it, and somebody knows the rights of whoever asks.
func (ch *Change) says(key string) bool {
	if ch.May == nil || ch.New == nil {
		return false
	}
	v, is := ch.New.Annotations[key]
	if !is || ch.Old == nil {
		return is
	}
	before, was := ch.Old.Annotations[key]
	return !was || before != v
}
