package remediations

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// LocationKey is the annotation key of the repair of a mesh location, on the Node that led the
// location when the repair began.
const LocationKey = RepairPrefix + "leader"

const (
	// MaxMoves is the greatest number of moves of the mesh leadership in one repair.
	MaxMoves = 4
	// MaxMoveBytes is the greatest length of the JSON text of one Move.
	MaxMoveBytes = 800
	// MaxLocation is the greatest length of a location's name.
	MaxLocation = 253
)

// BackFor is how long Drydock tries to give the leadership back after a repair, including the time
// of holds.
const BackFor = time.Hour

// LocationLimits limit the moves of a mesh location's leadership, apart from the limits for nodes.
type LocationLimits struct {
	Concurrent int
	// From the last move of one repair of a location to the first move of the next.
	PerLocation time.Duration
}

// Move is one change of the leadership of a mesh location. It is recorded before anything is
// changed.
type Move struct {
	Location string `json:"location"`
	From     string `json:"from"`
	To       string `json:"to"`
	// The earlier values of the leader annotation, by node. Null means that the node did not have
	// it.
	Before map[string]*string `json:"before"`
	// The provider refused the move, so there is nothing to undo. Not set for the last move of a
	// repair, whose outcome is in the intent.
	Refused bool `json:"refused,omitempty"`
}

// ValidLocation reports whether name can be the name of a location. Each name from an alert must
// pass it before it is used in a look-up, a record or a message.
func ValidLocation(name string) bool {
	if name == "" || len(name) > MaxLocation || !utf8.ValidString(name) {
		return false
	}
	for _, r := range name {
		if !unicode.IsPrint(r) {
			return false
		}
	}
	return true
}

// Validate returns an error if Drydock cannot have written the move.
func (m Move) Validate() error {
	switch {
	case !ValidLocation(m.Location):
		return fmt.Errorf("the move has no location")
	case ValidNodeName(m.From) != nil || ValidNodeName(m.To) != nil || m.From == m.To:
		return fmt.Errorf("the move from %q to %q is not a move between two nodes", clip(m.From, 40), clip(m.To, 40))
	case len(m.Before) == 0:
		return fmt.Errorf("the move to %s changes nothing", m.To)
	case len(EncodeJSON(m)) > MaxMoveBytes:
		return fmt.Errorf("the move to %s takes %d bytes on record, at most %d are kept", m.To, len(EncodeJSON(m)), MaxMoveBytes)
	}
	return nil
}

func (r *Record) validateMoves(of Remediation) error {
	leads := r.Location != ""
	switch {
	case leads != (of.Target == KindLocation):
		return fmt.Errorf("the record's step %s and its location %q do not belong together", r.Step.Name, clip(r.Location, 40))
	case !leads && (len(r.Moves) > 0 || r.Back != nil || (r.Intent != nil && r.Intent.Successor != "")):
		return fmt.Errorf("the record has moves of leadership and no location")
	case !leads:
		return nil
	case !ValidLocation(r.Location):
		return fmt.Errorf("the record's location %q is not a valid name", clip(r.Location, 40))
	case len(r.Moves) > MaxMoves:
		return fmt.Errorf("the record has %d moves, Drydock makes at most %d", len(r.Moves), MaxMoves)
	case (r.Intent == nil) != (len(r.Moves) == 0) && (len(r.Moves) > 0 || !r.Withheld()):
		return fmt.Errorf("the record has moves without an intent, or an intent without a move")
	case r.Back != nil && (len(r.Moves) == 0 || r.Back.IsZero() || r.Phase == PhaseVerifying):
		return fmt.Errorf("the record undoes a move that it does not have")
	}
	for _, m := range r.Moves {
		if err := m.Validate(); err != nil {
			return err
		}
		if m.Location != r.Location {
			return fmt.Errorf("the move to %s is in another location than the record", m.To)
		}
	}
	last := ""
	if n := len(r.Moves); n > 0 {
		last = r.Moves[n-1].To
	}
	if r.Intent != nil && ((r.Intent.ID == "" && !r.Withheld()) || r.Intent.At.IsZero() || r.Intent.Successor != last) {
		return fmt.Errorf("the record's intent is not that of its last move")
	}
	return nil
}

// Made returns the moves that changed the leadership or may have changed it.
func (r *Record) Made() (out []Move) {
	for i, m := range r.Moves {
		last := i == len(r.Moves)-1
		if m.Refused || (last && r.Intent.Outcome == CallRefused) {
			continue
		}
		out = append(out, m)
	}
	return out
}

// Successors returns the nodes that the repair made leaders or tried to, in order.
func (r *Record) Successors() []string {
	var out []string
	for _, m := range r.Moves {
		out = append(out, m.To)
	}
	return out
}

// PutBackID is the id of the attempt that gives the leadership back.
func (r *Record) PutBackID() string { return r.ID + "-back" }

// LeftAs returns the end of a sentence about a repair that ended early: which node leads the mesh
// location now. It is "" if no leadership was moved.
func (r *Record) LeftAs() string {
	if len(r.Moves) == 0 {
		return ""
	}
	return fmt.Sprintf("; location %s is still led by %s (before the repair: %s)", r.Location, r.Moves[len(r.Moves)-1].To, r.Moves[0].From)
}

// promoteLeader's proof is that the new node leads and that the location answers again. Package
// targets/location checks it.
var promoteLeader = Remediation{
	Name: "promote-leader", Verb: "move mesh leadership off", Disruptive: true, Once: true, Target: KindLocation, Wait: 3 * time.Minute, Attempts: 2, Invasive: 1,
}

// Pod names a pod. UID distinguishes it from other pods of the same name.
type Pod struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid,omitempty"`
}

func (p Pod) String() string { return p.Namespace + "/" + p.Name }

// Object names a Kubernetes object in messages.
type Object struct{ APIVersion, Kind, Namespace, Name, UID string }

// PodNamed returns the pod with a name in the form of Pod.String.
func PodNamed(name string) Pod {
	namespace, pod, _ := strings.Cut(name, "/")
	return Pod{Namespace: namespace, Name: pod}
}

func (r *Record) validatePod() error {
	switch {
	case r.Pod == nil:
	case r.Pod.Namespace == "" || r.Pod.Name == "":
		return errors.New("the record's pod lacks its name or its namespace")
	case r.Observes():
	case r.Intent == nil || (r.Intent.ID == "" && !r.Withheld()) || r.Intent.At.IsZero():
		return errors.New("the record of a sidecar's repair has no intent")
	}
	return nil
}

const sidecarPrefix = RepairPrefix + string(KindSidecar) + "-"

// SidecarKey returns the annotation key of the record of the pod's sidecar, which does not depend
// on the pod's UID.
func SidecarKey(p Pod) string { return KeyOf(KindSidecar, p.String()) }

// SidecarsInFlight returns the sidecar repairs in flight on a Node with these annotations.
func SidecarsInFlight(annotations map[string]string) (out []*Record) {
	for k, v := range annotations {
		if !strings.HasPrefix(k, sidecarPrefix) {
			continue
		}
		if r, err := DecodeRecord(v); err == nil && r.Phase.InFlight() {
			out = append(out, r)
		}
	}
	return out
}

// SidecarTakesPlace reports whether a sidecar's repair counts against limits.sidecars.concurrent:
// while it is in flight, but not longer than its step may take. Otherwise it could count for ever,
// because no repair ends on a Node with an unreadable record.
func (c *Config) SidecarTakesPlace(r *Record, now time.Time) bool {
	if r == nil || !r.Phase.InFlight() {
		return false
	}
	from, until := c.flightBy(c.Policy(r.Policy), r)
	return InFlightAt(from, until, now)
}

// markReady approves a sidecar that waits for an approval, which then lets its pod's main container
// start. The proof is the sidecar's own answer that it is ready. Package targets/sidecar checks it.
var markReady = Remediation{Name: "mark-ready", Verb: "mark ready", Once: true, Target: KindSidecar, Wait: time.Minute, Attempts: 1}
