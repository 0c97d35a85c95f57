package node

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
)

// request returns a person's request from the record or the annotation, or an empty text.
func (s *state) request() string {
	if r := s.Record; r != nil && r.Cause.Request != "" {
		return r.Cause.Request
	}
	v, ok := s.Node.Annotations[remediations.RequestKey]
	if !ok {
		return ""
	}
	request, err := s.Config.ParseRequest(v)
	if err != nil {
		return "" // consume reports the error
	}
	return request
}

// asked decides about a request. The node's alerts wait until that repair has ended.
func (s *state) asked(request string, now time.Time) lifecycle.Decision {
	p := s.Config.Requested(request, s.Node)
	if name, ok := strings.CutPrefix(request, remediations.RequestRemediation); ok && p == nil {
		return s.refuse("no plan for this node has the settings of %s; request a policy whose plan has that step", name)
	}
	if p == nil {
		return s.refuse("policy %s does not apply to this node, or is off", strings.TrimPrefix(request, remediations.RequestPolicy))
	}
	if s.Stale() {
		return s.Look("querying Alertmanager whether the node is silenced")
	}
	d := s.consider(p, nil, request, now)
	if d.Reason == remediations.ReasonObserving || (d.Reason == remediations.ReasonProviderAbsent || d.Reason == remediations.ReasonProviderUnreachable) && !s.passes(d.Record) {
		return s.refuse("%s: %s", d.Reason, d.Message)
	}
	return d
}

func (s *state) refuse(format string, args ...any) lifecycle.Decision {
	d := lifecycle.Decision{Verb: lifecycle.VerbRest}
	d.Message = fmt.Sprintf(format, args...)
	notice(&d, lifecycle.RequestRefused, "%s", d.Message)
	if r := s.Record; r != nil && r.Cause.Request != "" {
		d.Verb = lifecycle.VerbDrop
	}
	return d
}

// consumeRequest removes a person's request in the write that stores the repair, or when it is
// refused. If nothing was decided yet, the request stays.
func (s *state) consumeRequest(d *lifecycle.Decision) {
	v, ok := s.Node.Annotations[remediations.RequestKey]
	if !ok {
		return
	}
	r := s.Record
	request, err := s.Config.ParseRequest(v)
	refused := slices.ContainsFunc(d.Notices, func(n lifecycle.Notice) bool { return n.Reason == lifecycle.RequestRefused })
	switch {
	case err != nil:
		notice(d, lifecycle.AnnotationInvalid, "%v", err)
	case refused, d.Record != nil && d.Record.Cause.Request == request && (r == nil || r.ID != d.Record.ID):
	case s.Journal.Malformed != nil:
		notice(d, lifecycle.RequestRefused, "%s: the node's record cannot be read; set %s=true first, which deletes the record", request, remediations.ResetKey)
	case r != nil && r.Phase == remediations.PhaseExhausted:
		notice(d, lifecycle.RequestRefused, "%s: repair %s has run out of steps here; set %s=true first, when the node is fixed", request, r.ID, remediations.ResetKey)
	case r != nil && (r.Intent != nil || r.Cause.Request != ""):
		notice(d, lifecycle.RequestRefused, "%s: repair %s by policy %s is under way; cancel it with %s=%s, or wait for its end", request, r.ID, r.Policy, remediations.CancelKey, r.ID)
	default:
		return // nothing was decided yet
	}
	d.Consume = append(d.Consume, remediations.RequestKey)
}
