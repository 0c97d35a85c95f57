package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/internal/config"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/civo"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/kube"
)

// newActuators are the remediations that the configured providers can carry out, and how long one call may take.
func newActuators(cfg *config.Config, late func(node, attempt string, outcome remediations.CallOutcome, why string)) (map[string]engine.Actuator, time.Duration, error) {
	actuators := map[string]engine.Actuator{}
	c := cfg.Civo
	if c == nil {
		return actuators, callMargin, nil
	}
	provider, err := civo.New(civo.Options{
		APIURL: c.APIURL.String(), ClusterID: c.ClusterID, Region: c.Region, APIKeyFile: c.APIKeyFile,
		Timeout: c.Timeout, UserAgentVersion: thisBuild().Now(),
		Late: func(m civo.Machine, err error) {
			outcome, err := outcomeOf(err)
			late(m.NodeName, m.Ref, outcome, errorText(err))
		},
	})
	if err != nil {
		return nil, 0, err
	}
	actuators["reboot"] = civoReboot{provider}
	actuators["replace"] = civoReplace{provider}
	return actuators, callMargin + 2*c.Timeout, nil // the machine is looked up first
}

// civoReboot cuts the power of a machine, or asks its operating system.
type civoReboot struct{ client *civo.Client }

func (c civoReboot) Act(ctx context.Context, m engine.Machine, mayStill func() error) (remediations.CallOutcome, error) {
	if m.Soft {
		return outcomeOf(c.client.SoftReboot(ctx, civoMachine(m), mayStill))
	}
	return outcomeOf(c.client.Reboot(ctx, civoMachine(m), mayStill))
}

// Survey finds the machine, so that one that is not there, or an API that does not answer, costs no attempt.
func (c civoReboot) Survey(ctx context.Context, m engine.Machine) remediations.Survey {
	_, err := c.client.Find(ctx, civoMachine(m))
	return surveyOf(err)
}

// civoReplace has a machine deleted and another one of its pool built.
type civoReplace struct{ client *civo.Client }

func (c civoReplace) Act(ctx context.Context, m engine.Machine, mayStill func() error) (remediations.CallOutcome, error) {
	if m.Before == nil {
		return remediations.CallRefused, errors.New("the record does not say which machine there was before")
	}
	return outcomeOf(c.client.Recycle(ctx, civoMachine(m), beforeOf(*m.Before), mayStill))
}

func (c civoReplace) Survey(ctx context.Context, m engine.Machine) remediations.Survey {
	b, err := c.client.Look(ctx, civoMachine(m))
	s := surveyOf(err)
	if err == nil {
		s.Before = &remediations.Before{Instance: b.InstanceID, Hostname: b.Hostname, Pool: b.PoolID, Count: b.PoolCount, Newest: b.Newest}
	}
	return s
}

func (c civoReplace) Replaced(ctx context.Context, b remediations.Before) (remediations.Replacement, error) {
	r, err := c.client.Replaced(ctx, beforeOf(b))
	if err != nil {
		return remediations.Replacement{}, err
	}
	out := remediations.Replacement{MachineGone: r.OldGone, Missing: r.Missing}
	for _, in := range r.Successors {
		out.Successors = append(out.Successors, civo.ProviderID(in.ID))
	}
	return out, nil
}

func civoMachine(m engine.Machine) civo.Machine {
	return civo.Machine{NodeName: m.Node, ProviderID: m.ProviderID, Ref: m.Attempt}
}

func beforeOf(b remediations.Before) civo.Before {
	return civo.Before{InstanceID: b.Instance, Hostname: b.Hostname, PoolID: b.Pool, PoolCount: b.Count, Newest: b.Newest}
}

// outcomeOf makes Civo's errors the three outcomes that the record knows.
func outcomeOf(err error) (remediations.CallOutcome, error) {
	var refused *civo.RefusedError
	var account *civo.AccountError
	switch {
	case err == nil:
		return remediations.CallAccepted, nil
	case errors.As(err, &account):
		return remediations.CallRefused, accountError{err}
	case errors.As(err, &refused):
		return remediations.CallRefused, err
	}
	return remediations.CallUnknown, err
}

// accountError is Civo's sentence, known to the engine as one about the account.
type accountError struct{ error }

func (accountError) Is(target error) bool { return target == engine.ErrAccount }

// How long to wait before the provider is asked again: what passes by itself, and what a person must mend.
const (
	askPassing = 30 * time.Second
	askMended  = 5 * time.Minute
)

// surveyOf makes Civo's refusal of a question a reason to wait.
func surveyOf(err error) remediations.Survey {
	if err == nil {
		return remediations.Survey{}
	}
	s := remediations.Survey{Trouble: err.Error(), Fleetwide: true, Again: askPassing}
	var refused *civo.RefusedError
	if errors.As(err, &refused) {
		switch refused.Reason.Concern() {
		case civo.OneMachine:
			s.Fleetwide, s.Again = false, askMended
		case civo.Setup, civo.Account:
			s.Again = askMended
		case civo.Passing:
		}
	}
	return s
}

// drainer evicts the pods of a node, with kubectl's own code.
type drainer struct{ kube.Drainer }

func (d drainer) Work(ctx context.Context, m engine.Machine, mayStill func() error, tell func(note, blocked string)) error {
	if err := mayStill(); err != nil {
		return err
	}
	_, err := d.Drain(ctx, m.Node, kube.DrainOptions{
		UID:      types.UID(m.UID),
		Progress: func(r kube.DrainReport) { tell(r.String(), blockedBy(r)) },
	})
	return err
}

// blockedBy names what is in a drain's way, without what changes with every pod that goes.
func blockedBy(r kube.DrainReport) string {
	var out []string
	for _, h := range r.Held {
		out = append(out, h.Pod+" "+h.Why)
	}
	if r.More > 0 {
		out = append(out, fmt.Sprintf("and %d more", r.More))
	}
	return strings.Join(out, "; ")
}
