package inspect

import (
	"fmt"
	"strings"
	"time"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/targets/location"
	"drydock.dev/drydock/remediations/targets/sidecar"
)

// TargetAnswer is the answer for a target other than the node: a pod's sidecar on the node, or the
// node's mesh location.
type TargetAnswer struct {
	// Target has the format of Repair.Target.
	Target  string `json:"target"`
	Subject string `json:"subject"`
	Answer
	alerts []string
}

// Others leaves out the target of the headline, and targets that need nothing.
func (t Why) Others() (out []TargetAnswer) {
	for _, target := range t.Targets {
		if target.Subject != t.Subject && target.State != Well {
			out = append(out, target)
		}
	}
	return out
}

// beside is a kind of target that Drydock observes before each step. The plugin cannot: it runs
// outside the cluster, and has no credentials for pods' sidecars and for the mesh.
type beside struct {
	of     remediations.Kind
	decide func(s *lifecycle.State, of remediations.Subject, now time.Time) lifecycle.Decision
	// looks returns answers that say "not asked", for the guards that need an observation of the
	// target.
	what  func(name string) string
	looks func(node, name string) []lifecycle.GuardAnswer
}

var besides = []beside{
	{
		of: remediations.KindLocation,
		decide: func(s *lifecycle.State, of remediations.Subject, now time.Time) lifecycle.Decision {
			return location.Decide(&location.State{State: s, Subject: of}, now)
		},
		what: func(name string) string { return "location " + name },
		looks: func(node, name string) []lifecycle.GuardAnswer {
			return []lifecycle.GuardAnswer{
				notAsked(remediations.ReasonLeaderUnknown, "Prometheus' series of the agents' probes of location %s", name),
				notAsked(remediations.ReasonLeaderHeld, "whether location %s answers, and who could lead it; what Drydock found: kubectl events -n default --for node/%s", name, node),
			}
		},
	},
	{
		of: remediations.KindSidecar,
		decide: func(s *lifecycle.State, of remediations.Subject, now time.Time) lifecycle.Decision {
			return sidecar.Decide(&sidecar.State{State: s, Subject: of}, now)
		},
		what: func(name string) string { return "the sidecar of " + name },
		looks: func(_, name string) []lifecycle.GuardAnswer {
			namespace, pod, _ := strings.Cut(name, "/")
			return []lifecycle.GuardAnswer{
				notAsked(remediations.ReasonSidecarUnknown, "the sidecar of %s, which Drydock asks from inside the cluster", name),
				notAsked(remediations.ReasonSidecarHeld, "whether the owner of pod %s, or a person, closed the gate on purpose; what Drydock found: kubectl events -n %s --for pod/%s", name, text.ShellWord(namespace), text.ShellWord(pod)),
			}
		},
	},
}

func notAsked(reason remediations.Reason, format string, args ...any) lifecycle.GuardAnswer {
	return lifecycle.GuardAnswer{Reason: reason, Standing: lifecycle.GuardNotSeen, Message: "not asked from here: " + fmt.Sprintf(format, args...)}
}

// targets leaves out targets with a repair in progress or an exhausted one: these are already among
// Why.Repairs.
func (s *Observation) targets() (out []TargetAnswer) {
	if s.State.Journal.Malformed != nil {
		return nil // an unreadable record holds the whole node
	}
	for _, k := range besides {
		for _, one := range s.Config.Core.Subjects(k.of, s.State.Journal) {
			if one.Record == nil || one.Record.Phase == remediations.PhasePending {
				out = append(out, s.target(k, one))
			}
		}
	}
	return out
}

func (s *Observation) target(k beside, one remediations.Subject) TargetAnswer {
	t := TargetAnswer{Target: one.Entry(), Subject: named(s.Node.Name, k.of, one.Name), Answer: nothing()}
	for _, a := range one.Alerts {
		t.alerts = append(t.alerts, a.Fingerprint)
	}
	own := *s.State
	own.Lease = nil // as in the engine: only a repair of the node itself uses the node's lease
	d, all := s.consider(&own, one.Record, k.looks(s.Node.Name, one.Name), func() lifecycle.Decision {
		return k.decide(&own, one, s.Now)
	})
	said := s.conclude(&t.Answer, d, all)
	first := "once Drydock has checked " + k.what(one.Name) + ": "
	switch {
	case t.State == UnderRepair:
		t.When = first + "no guard that could be asked here holds the repair"
	case t.State == Well && d.Verb == lifecycle.VerbLook: // between two attempts, Drydock observes the target before it asks the guards
		t.State, t.Policy, t.When = UnderRepair, one.Record.Policy, first+"then it asks the guards"
		if h := s.Ledger.HoldNow(s.Node, one.Record.Policy, one.Record, s.Now); h != nil {
			s.holds(&t.Answer, h, d.Policy)
		}
	case t.State == Well:
		t.Because = said
	}
	return t
}
