package http

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/signs"
)

// machine is what the Node says of its machine.
type machine struct {
	Node       string `json:"node"`
	UID        string `json:"uid"`
	ProviderID string `json:"providerID"`
	SystemUUID string `json:"systemUUID"`
	BootID     string `json:"bootID"`
}

// documentOf is what asks for the action.
func documentOf(action string, m engine.Machine) document {
	d := document{Action: action, machine: machineOf(m), Attempt: m.Attempt, Soft: m.Soft, Policy: m.Policy, Deadline: m.Deadline.UTC().Truncate(time.Second)}
	if m.Alert != nil {
		d.Alert = &alert{Name: m.Alert.Name, Labels: m.Alert.Labels}
	}
	return d
}

func machineOf(m engine.Machine) machine {
	return machine{Node: m.Node, UID: m.UID, ProviderID: m.ProviderID, SystemUUID: m.SystemUUID, BootID: m.BootID}
}

// document is what a receiver is sent, as docs/http-request.schema.json has it.
type document struct {
	Version string `json:"version"`
	Action  string `json:"action"`
	machine
	// Attempt and what follows are absent in a question.
	Attempt string `json:"attempt,omitempty"`
	// Soft: the operating system is to be asked, in place of the power being cut.
	Soft     bool      `json:"soft,omitempty"`
	Policy   string    `json:"policy,omitempty"`
	Alert    *alert    `json:"alert,omitempty"`
	Deadline time.Time `json:"deadline,omitzero"`
}

type alert struct {
	Name   string            `json:"name"`
	Labels map[string]string `json:"labels"`
}

// observe is the action of a question, which changes nothing.
const observe = "observe"

// What an observation says of the machine and of its job. An answer about another machine, from a cache for example, has another UID.
const (
	running, off, gone, unknown = "running", "off", "gone", "unknown"
	working, done, failed       = "working", "done", "failed"
)

// runs is what each says of whether the machine runs. One that is gone shows nothing: which machine the Node has is not certain.
var runs = map[string]signs.Answer{running: signs.Well, off: signs.Ill, gone: signs.Unknown, unknown: signs.Unknown}

// observation is what the receiver says about a machine, as docs/http-observation.schema.json has it.
type observation struct {
	UID     string   `json:"uid"`
	Can     []string `json:"can"`
	Machine string   `json:"machine"`
	Message string   `json:"message"`
	// Job is the last one on this machine; nil: there was none.
	Job *struct {
		Attempt string `json:"attempt"`
		State   string `json:"state"`
		Message string `json:"message"`
	} `json:"job"`
	// Successors are the provider IDs of the machines that have come for it.
	Successors []string `json:"successors"`
}

// parse reads an observation of the machine of the Node with that UID.
func parse(body []byte, uid string) (o observation, err error) {
	err = json.Unmarshal(body, &o)
	switch {
	case err != nil:
	case o.UID != uid:
		err = fmt.Errorf("its uid is %.60q, and the question was about %q", o.UID, uid)
	case o.Can == nil:
		err = errors.New("it has no can; an empty list says that nothing can be done")
	case runs[o.Machine] == "":
		err = fmt.Errorf("its machine is %.60q, and must be %s, %s, %s or %s", o.Machine, running, off, gone, unknown)
	case o.Job != nil && !slices.Contains([]string{working, done, failed}, o.Job.State):
		err = fmt.Errorf("its job.state is %.60q, and must be %s, %s or %s", o.Job.State, working, done, failed)
	}
	return o, err
}
