package remediations

import (
	"errors"
	"strings"
	"time"
)

// Pod names a pod. UID tells it from those that had its name before, or have it after it.
type Pod struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid,omitempty"`
}

func (p Pod) String() string { return p.Namespace + "/" + p.Name }

// Object names an object for people's eyes.
type Object struct{ APIVersion, Kind, Namespace, Name, UID string }

// PodNamed is the pod of that name, which String gave.
func PodNamed(name string) Pod {
	namespace, pod, _ := strings.Cut(name, "/")
	return Pod{Namespace: namespace, Name: pod}
}

// validatePod is the part of a record's validation that speaks of sidecars.
func (r *Record) validatePod() error {
	switch {
	case r.Pod == nil:
	case r.Pod.Namespace == "" || r.Pod.Name == "":
		return errors.New("the record's pod lacks its name or its namespace")
	case r.Intent == nil || (r.Intent.ID == "" && !r.Withheld()) || r.Intent.At.IsZero():
		return errors.New("the record is a sidecar's and has no intent, and there is one only while something is done")
	}
	return nil
}

// sidecarPrefix is how the keys of sidecars' records begin.
const sidecarPrefix = RepairPrefix + string(KindSidecar) + "-"

// SidecarKey is the key of the repair of the pod's sidecar, whatever the pod's UID.
func SidecarKey(p Pod) string { return KeyOf(KindSidecar, p.String()) }

// sidecarsInFlight are the repairs of sidecars in flight on a Node with these annotations.
func sidecarsInFlight(annotations map[string]string) (out []*Record) {
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

// SidecarTakesPlace says that the repair of a sidecar counts under limits.sidecars.concurrent: it is in flight, and for no
// longer than its step may take. Nothing ends one on a Node that has a record which cannot be read.
func (c *Config) SidecarTakesPlace(r *Record, now time.Time) bool {
	if r == nil || !r.Phase.InFlight() {
		return false
	}
	from, until := r.flight(c.Policy(r.Policy))
	return inFlightAt(from, until, now)
}

// SidecarsInFlight counts the sidecars that take a place.
func (r *Roster) SidecarsInFlight(now time.Time) int {
	busy := 0
	for _, m := range r.all {
		for _, s := range m.sidecars {
			if r.config.SidecarTakesPlace(s, now) {
				busy++
			}
		}
	}
	return busy
}

// markReady approves a gated sidecar, which then lets its pod's main container go on. It disrupts nothing. Its proof is
// that the sidecar itself answers ready, which targets/sidecar asks for.
var markReady = Remediation{Name: "mark-ready", Verb: "mark ready", Once: true, Target: KindSidecar, Wait: time.Minute, Attempts: 1}
