package admission

import (
	"errors"
	"fmt"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
)

// People's annotations need a right besides the right to patch nodes: a verb on a resource that no
// API serves. RBAC grants it like any other.
const (
	RightsGroup    = "drydock.dev"
	RightsResource = "repairs"
)

// The annotations that need a right, each with its verb. Pausing a node, excluding a node or
// removing a person's annotation needs no right, because it only stops repairs or lets the guards
// decide again. Removing a key that only Drydock writes needs the verb resetVerb.
var entitled = []struct {
	key, verb string
	// The annotation only stops repairs, so it is allowed if the right cannot be checked. A repair
	// that a person wants to stop must not continue, even if the wrong person can then stop it,
	// too.
	stops bool
}{
	{key: remediations.RequestKey, verb: "request"},
	{key: remediations.ApproveKey, verb: "approve"},
	{key: remediations.ResetKey, verb: resetVerb},
	{key: remediations.CancelKey, verb: "cancel", stops: true},
	{key: remediations.BreakGlassKey, verb: "break-glass", stops: true},
}

// The right to make Drydock forget a repair and the history of earlier repairs.
const resetVerb = "reset"

// ErrNotAsked is the error of Change.May if the API server was not asked: too many rights are being
// checked, or the user's groups are too large. An outsider can cause both. So it denies every
// annotation that needs a right, even one that stops a repair.
var ErrNotAsked = errors.New("the API server was not asked")

// RightVerbs returns the verbs of all annotations that need a right.
func RightVerbs() []string {
	out := make([]string, len(entitled))
	for i, w := range entitled {
		out[i] = w.verb
	}
	return out
}

// VerbFor returns the verb that a user needs to set the annotation, or "".
func VerbFor(key string) string {
	for _, w := range entitled {
		if w.key == key {
			return w.verb
		}
	}
	return ""
}

// The right to patch nodes is not enough, because every network plugin has it. Only some of these
// users should be able to replace a machine, or to make Drydock forget how often it repaired a
// machine.
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

// lacks returns nil if the user may set or remove the key or, with stops, if the right cannot be
// checked.
func (ch *Change) lacks(verb, key, done string, stops bool) *violation {
	allowed, err := ch.May(verb)
	switch {
	case err != nil && stops && !errors.Is(err, ErrNotAsked): // allowed; unchecked returns the warning
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

// The warning about an annotation that was allowed although the right could not be checked, or "".
func (ch *Change) unchecked() string {
	for _, w := range entitled {
		if !w.stops || !ch.says(w.key) {
			continue
		}
		if _, err := ch.May(w.verb); err != nil {
			return fmt.Sprintf("%s is set although the verb %q on %s.%s could not be checked (%s): this annotation only stops repairs",
				w.key, w.verb, RightsResource, RightsGroup, text.Line(err.Error(), 200))
		}
	}
	return ""
}

// The method says returns false if May is nil, because annotations then need no right.
func (ch *Change) says(key string) bool {
	if ch.May == nil {
		return false
	}
	v, is := ch.New.Annotations[key]
	if !is || ch.Old == nil {
		return is
	}
	before, was := ch.Old.Annotations[key]
	return !was || before != v
}
