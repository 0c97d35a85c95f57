package admission

import (
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

// entitled are the annotations that ask for a right, each with its verb. Pausing a node and excluding it ask for none, nor does
// taking any key off: these only stop repairs, or give the node back to the guards.
var entitled = []struct {
	key, verb string
	// stops: it makes Drydock do less. Where nobody can say who has the right, it is let through: a repair that should be
	// stopped is worse than one that was stopped by the wrong person.
	stops bool
}{
	{key: remediations.RequestKey, verb: "request"},
	{key: remediations.ApproveKey, verb: "approve"},
	{key: remediations.ResetKey, verb: "reset"},
	{key: remediations.CancelKey, verb: "cancel", stops: true},
	{key: remediations.BreakGlassKey, verb: "break", stops: true},
}

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

// rightMissing: the right to patch nodes is that of every network plugin. To have a machine replaced is another one.
func rightMissing(ch *Change, _ *repair) *violation {
	for _, w := range entitled {
		if ch.ofNode() || !ch.says(w.key) {
			continue
		}
		allowed, err := ch.May(w.verb)
		switch {
		case err != nil && w.stops: // unchecked says so
		case err != nil:
			return &violation{reason: ReasonRightUnknown, what: "setting " + w.key, message: fmt.Sprintf(
				"%s is not set on node %s: whether %s has the verb %q on %s.%s could not be checked: %s; try again",
				w.key, ch.New.Name, text.Line(ch.User, 120), w.verb, RightsResource, RightsGroup, text.Line(err.Error(), 200))}
		case !allowed:
			return &violation{reason: ReasonRightMissing, what: "setting " + w.key, message: fmt.Sprintf(
				"%s is not set on node %s: %s lacks the verb %q on %s.%s; the right to patch nodes is not enough. The chart's ClusterRole drydock-operator has it: ask an administrator to bind that role",
				w.key, ch.New.Name, text.Line(ch.User, 120), w.verb, RightsResource, RightsGroup)}
		}
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
