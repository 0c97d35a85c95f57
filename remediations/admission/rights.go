package admission

import (
	"errors"
	"fmt"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
)

// People's annotations need rights beside the right to patch nodes. These rights are verbs on a
// resource that no API serves. RBAC grants them like any other.
const (
	RightsGroup    = "drydock.dev"
	RightsResource = "repairs"
)

// entitled are the annotations that need a right, each with its verb. Pausing a node, excluding it
// or removing a person's key needs no right: this only stops repairs, or gives the node back to the
// guards. Removing a key of Drydock's own needs resetVerb.
var entitled = []struct {
	key, verb string
	// stops: the annotation makes Drydock do less. If the right cannot be checked, it is allowed: a
	// repair that should stop and continues is worse than one that the wrong person stopped.
	stops bool
}{
	{key: remediations.RequestKey, verb: "request"},
	{key: remediations.ApproveKey, verb: "approve"},
	{key: remediations.ResetKey, verb: resetVerb},
	{key: remediations.CancelKey, verb: "cancel", stops: true},
	{key: remediations.BreakGlassKey, verb: "break-glass", stops: true},
}

// resetVerb is the right to make Drydock forget a repair, and what it remembers of earlier ones.
const resetVerb = "reset"

// ErrNotAsked is Change.May's error if the API server was not asked, because too many checks are
// open or the user is too large. Outsiders can cause this, so it allows no annotation.
var ErrNotAsked = errors.New("the API server is not asked")

// RightVerbs returns the verbs that exist.
func RightVerbs() []string {
	out := make([]string, len(entitled))
	for i, w := range entitled {
		out[i] = w.verb
	}
	return out
}

// VerbFor returns the verb that setting the annotation needs; empty: none.
func VerbFor(key string) string {
	for _, w := range entitled {
		if w.key == key {
			return w.verb
		}
	}
	return ""
}

// rightMissing checks the right of its own that each of these annotations needs. Every network
// plugin may patch nodes, but not every user may have a machine replaced, or make Drydock forget
// how often it repaired a machine.
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

// lacks returns the violation that the user may not set or remove the key; nil: the user may.
// stops: the key is allowed if the right cannot be checked.
func (ch *Change) lacks(verb, key, done string, stops bool) *violation {
	allowed, err := ch.May(verb)
	switch {
	case err != nil && stops && !errors.Is(err, ErrNotAsked): // unchecked reports this case
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

// unchecked returns the warning about an annotation that was allowed although the right could not
// be checked; empty: none.
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

// says reports whether the change sets or alters the annotation, and the user's rights can be
// checked.
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
