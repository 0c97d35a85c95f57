package inspect

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
)

// change returns what a person may do about the hold: one command, or a sentence with commands
// between backticks. Empty: wait, or check what the hold's sentence names.
func (s *Observation) change(h *Hold, policy string) string {
	node := s.Node.Name
	switch h.Reason { //nolint:exhaustive // a person can do nothing at once about the others
	case NoLeader:
		namespace, _, _ := strings.Cut(s.leader.Lease, "/")
		return "kubectl get pods -n " + text.ShellWord(namespace) + " -l " + InstalledBy
	case remediations.ReasonRecordMalformed:
		return "kubectl drydock reset " + node
	case remediations.ReasonExcluded:
		return EndOf(s.Node, h)
	case remediations.ReasonPaused:
		return s.unpause(policy)
	case remediations.ReasonCordonedByOther:
		return "kubectl uncordon " + node
	case remediations.ReasonSilenced:
		return s.unsilence(h)
	case remediations.ReasonBlind:
		if strings.Contains(h.Message, "Watchdog") {
			return "make the Watchdog alert fire in Alertmanager; Drydock continues by itself"
		}
		return "correct what the sentence names; Drydock continues by itself"
	case remediations.ReasonWritesDenied:
		if strings.Contains(h.Message, "Too long") {
			return "remove large annotations of the Node" + s.largest() + ": all together may have 256 KiB; Drydock tries again by itself"
		}
		return "allow Drydock's ServiceAccount these writes in the policy, webhook or role named there; Drydock tries again by itself"
	case remediations.ReasonFleetUnhealthy:
		return "find what the unhealthy nodes have in common: `kubectl drydock status` names them"
	case remediations.ReasonCommonCause:
		return "find what the nodes have in common (`kubectl drydock status` names the one that is repaired first)"
	case remediations.ReasonControlPlaneBusy, remediations.ReasonAtLimit:
		return "wait for the repairs in progress (`kubectl drydock status` names them), or end one: `kubectl drydock cancel NODE`"
	case remediations.ReasonNodeUnderRepair:
		return "`kubectl drydock status`, and `kubectl drydock cancel NODE` to end the other repair"
	case remediations.ReasonRepairsSpent, remediations.ReasonCooldown:
		return "`kubectl drydock history " + node + " -o wide` says what was tried"
	case remediations.ReasonPolicyFailing:
		return "`kubectl drydock reset --policy " + text.ShellWord(policy) + "`, once the cause is found"
	case remediations.ReasonAwaitingApproval:
		return "kubectl drydock approve " + node
	case remediations.ReasonObserving:
		return "`mode: enforce` for policy " + policy + " in Drydock's configuration"
	case remediations.ReasonProviderUnreachable:
		return "the fault that the sentence names; Drydock asks again by itself"
	case remediations.ReasonProviderAbsent:
		if !lacksProvider(h.Message) {
			return "correct what the sentence names; Drydock asks again by itself"
		}
		return "`drydock check FILE` says which provider is missing"
	}
	return ""
}

// lacksProvider reports whether a hold's message is about a missing provider, and not a provider's
// own answer.
func lacksProvider(message string) bool {
	return message == "" || strings.HasPrefix(message, "no step of policy ") || strings.HasPrefix(message, "no provider serves ")
}

// EndOf returns the command that removes what a person set on the Node, for a hold that Said
// returned.
func EndOf(n *corev1.Node, h *Hold) string {
	if h.Reason == remediations.ReasonExcluded {
		return "kubectl label node " + n.Name + " " + remediations.ExcludeLabel + "-"
	}
	return "kubectl drydock resume " + n.Name
}

// unpause returns the command that removes what people set on the node.
func (s *Observation) unpause(policy string) string {
	a := s.Node.Annotations
	_, paused := a[remediations.PauseKey]
	_, broken := a[remediations.BreakGlassKey]
	_, cancels := a[remediations.CancelKey]
	switch {
	case paused, broken:
		return EndOf(s.Node, &Hold{Reason: remediations.ReasonPaused})
	case cancels:
		return "kubectl annotate node " + s.Node.Name + " " + remediations.CancelKey + "-"
	}
	if p := s.policy(policy); p != nil && p.Kind != remediations.KindNode {
		return "" // no command can do it: the policy continues when the alert has ended and fires again
	}
	return "kubectl drydock repair " + s.Node.Name + " --policy " + text.ShellWord(policy) // the alert's last repair was cancelled
}

// silenceNamed finds the first silence in a hold's message. It is strict, so that text which a
// person wrote is never taken for an id.
var silenceNamed = regexp.MustCompile(`^covered by silence ([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\b`)

// unsilence returns the command that ends the known silences: Alertmanager's or, without those, the
// one on the record.
func (s *Observation) unsilence(h *Hold) string {
	ids := s.silences(h.alert)
	if named := silenceNamed.FindStringSubmatch(h.Message); len(ids) == 0 && named != nil {
		ids = named[1:]
	}
	switch {
	case len(ids) > 0:
		return s.expire(ids)
	case strings.HasPrefix(h.Message, "muted by "):
		return "the time intervals of the route in Alertmanager's configuration"
	}
	return "end the silence in Alertmanager: `amtool silence expire ID`"
}

// expire returns the command that ends the silences. Alertmanagers that do not share silences need
// one command each.
func (s *Observation) expire(ids []string) string {
	at := map[string][]string{}
	for _, id := range ids {
		where := ""
		if i := slices.IndexFunc(s.Silences(), func(known Silence) bool { return known.ID == id && known.URL != "" }); i >= 0 {
			where = " --alertmanager.url=" + text.ShellWord(s.Silences()[i].URL)
		}
		at[where] = append(at[where], id)
	}
	var commands []string
	for _, where := range slices.Sorted(maps.Keys(at)) {
		commands = append(commands, "amtool silence expire "+strings.Join(at[where], " ")+where)
	}
	if len(commands) == 1 {
		return commands[0]
	}
	return "`" + strings.Join(commands, "`, and `") + "`"
}

// silences returns the silences of the node's alert with this fingerprint. Empty: of all its
// alerts.
func (s *Observation) silences(of string) (ids []string) {
	if !s.Asked {
		return nil
	}
	for _, r := range s.State.Snapshot.Replicas {
		for _, a := range Firing(s.Node) {
			if of == "" || of == a.Fingerprint {
				ids = append(ids, r.Alerts[a.Fingerprint].SilencedBy...)
			}
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// largest names the largest annotation of the Node that is not Drydock's, and the command that
// removes it.
func (s *Observation) largest() string {
	key := ""
	for k, v := range s.Node.Annotations {
		if !strings.Contains(k, "drydock.dev") && (key == "" || len(v) > len(s.Node.Annotations[key]) || (len(v) == len(s.Node.Annotations[key]) && k < key)) {
			key = k
		}
	}
	if key == "" {
		return ""
	}
	return fmt.Sprintf(" (the largest is %s with %d KiB: `kubectl annotate node %s %s-`)", key, len(s.Node.Annotations[key])>>10, text.ShellWord(s.Node.Name), text.ShellWord(key))
}
