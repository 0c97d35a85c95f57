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

// change is one command, or a sentence with commands between backticks. It is "" if a person can
// only wait or check what the hold's message names.
func (s *Observation) change(h *Hold, policy string) string {
	node := s.Node.Name
	switch h.Reason { //nolint:exhaustive // a person can do nothing at once about the others
	case NoLeader:
		namespace, _, _ := strings.Cut(s.leader.Lease, "/")
		return "kubectl get pods -n " + text.ShellWord(namespace) + " -l " + installedBy
	case remediations.ReasonRecordMalformed:
		return "kubectl drydock reset " + node
	case remediations.ReasonExcluded:
		return endOf(s.Node, h)
	case remediations.ReasonPaused:
		return s.unpause(policy)
	case remediations.ReasonCordonedByOther:
		return "kubectl uncordon " + node
	case remediations.ReasonSilenced:
		return s.unsilence(h)
	case remediations.ReasonBlind:
		if strings.Contains(h.Message, "Watchdog") {
			return "make sure that the Watchdog alert fires and reaches Alertmanager; Drydock continues by itself"
		}
		return "fix the fault that the message names; Drydock continues by itself"
	case remediations.ReasonWritesDenied:
		if strings.Contains(h.Message, "Too long") {
			return "remove large annotations of the Node" + s.largest() + ": the limit is 256 KiB for all annotations together; Drydock tries again by itself"
		}
		return "allow these writes of Drydock's ServiceAccount in the policy, webhook or role that the message names; Drydock tries again by itself"
	case remediations.ReasonFleetUnhealthy:
		return "find what the unhealthy nodes have in common; to list them: `kubectl drydock status`"
	case remediations.ReasonCommonCause:
		return "find what the unhealthy nodes have in common; to see the node that is repaired first: `kubectl drydock status`"
	case remediations.ReasonControlPlaneBusy, remediations.ReasonAtLimit:
		return "wait for the repairs in progress (to list them: `kubectl drydock status`), or end one: `kubectl drydock cancel NODE`"
	case remediations.ReasonNodeUnderRepair:
		return "wait for the other repair (to see it: `kubectl drydock status`), or end it: `kubectl drydock cancel NODE`"
	case remediations.ReasonRepairsSpent, remediations.ReasonCooldown:
		return "see what was tried: `kubectl drydock history " + node + " -o wide`"
	case remediations.ReasonPolicyFailing:
		return "find and fix the cause, then: `kubectl drydock reset --policy " + text.ShellWord(policy) + "`"
	case remediations.ReasonAwaitingApproval:
		return "kubectl drydock approve " + node
	case remediations.ReasonObserving:
		return "set `mode: enforce` for policy " + policy + " in Drydock's configuration"
	case remediations.ReasonProviderUnreachable:
		return "fix the fault that the message names; Drydock asks the provider again by itself"
	case remediations.ReasonProviderAbsent:
		if !lacksProvider(h.Message) {
			return "fix the fault that the message names; Drydock asks the provider again by itself"
		}
		return "configure a provider for the step; to see which one is missing: `drydock check FILE`"
	}
	return ""
}

// lacksProvider reports whether no provider is configured. Otherwise the message is the answer of a
// provider.
func lacksProvider(message string) bool {
	return message == "" || strings.HasPrefix(message, "no step of policy ") || strings.HasPrefix(message, "no provider serves ")
}

func endOf(n *corev1.Node, h *Hold) string {
	if h.Reason == remediations.ReasonExcluded {
		return "kubectl label node " + n.Name + " " + remediations.ExcludeLabel + "-"
	}
	return "kubectl drydock resume " + n.Name
}

func (s *Observation) unpause(policy string) string {
	a := s.Node.Annotations
	_, paused := a[remediations.PauseKey]
	_, broken := a[remediations.BreakGlassKey]
	_, cancels := a[remediations.CancelKey]
	switch {
	case paused, broken:
		return endOf(s.Node, &Hold{Reason: remediations.ReasonPaused})
	case cancels:
		return "kubectl annotate node " + s.Node.Name + " " + remediations.CancelKey + "-"
	}
	if p := s.policy(policy); p != nil && p.Kind != remediations.KindNode {
		return "" // no command can do it: the policy continues when the alert has ended and fires again
	}
	return "kubectl drydock repair " + s.Node.Name + " --policy " + text.ShellWord(policy) // the alert's last repair was cancelled
}

// silenceNamed accepts only the exact format of an ID, because a hold's message may also have text
// that a person wrote.
var silenceNamed = regexp.MustCompile(`^covered by silence ([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\b`)

// unsilence takes the ID from the hold's message if Alertmanager was not asked.
func (s *Observation) unsilence(h *Hold) string {
	ids := s.silences(h.alert)
	if named := silenceNamed.FindStringSubmatch(h.Message); len(ids) == 0 && named != nil {
		ids = named[1:]
	}
	switch {
	case len(ids) > 0:
		return s.expire(ids)
	case strings.HasPrefix(h.Message, "muted by "):
		return "change the mute time intervals of the route in Alertmanager's configuration"
	}
	return "end the silence in Alertmanager: `amtool silence expire ID`"
}

// expire returns one command for each Alertmanager, because Alertmanagers may not share silences.
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

// silences returns the IDs of the silences of the alert with this fingerprint. "" means all alerts
// of the node.
func (s *Observation) silences(of string) (ids []string) {
	if !s.Asked {
		return nil
	}
	for _, r := range s.State.Snapshot.Replicas {
		for _, a := range firing(s.Node) {
			if of == "" || of == a.Fingerprint {
				ids = append(ids, r.Alerts[a.Fingerprint].SilencedBy...)
			}
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

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
