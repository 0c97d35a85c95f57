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

// machine is the Node's data about its machine.
type machine struct {
	Node       string `json:"node"`
	UID        string `json:"uid"`
	ProviderID string `json:"providerID"`
	SystemUUID string `json:"systemUUID"`
	BootID     string `json:"bootID"`
}

// documentOf returns the request for the action.
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

// document is sent to a receiver, in the form of docs/http-request.schema.json.
type document struct {
	Version string `json:"version"`
	Action  string `json:"action"`
	machine
	// Attempt and the fields after it are absent in a question.
	Attempt string `json:"attempt,omitempty"`
	// Soft: the operating system restarts, instead of a cut of the power.
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

// The states of the machine and of its job in an observation. An answer about another machine, from
// a cache for example, has another UID.
const (
	running, off, gone, unknown = "running", "off", "gone", "unknown"
	working, done, failed       = "working", "done", "failed"
)

// runs maps each state to whether the machine runs. A machine that is gone shows nothing: it is not
// certain which machine the Node has.
var runs = map[string]signs.Answer{running: signs.Well, off: signs.Ill, gone: signs.Unknown, unknown: signs.Unknown}

// observation is the receiver's answer about a machine, in the form of
// docs/http-observation.schema.json.
type observation struct {
	UID     string   `json:"uid"`
	Can     []string `json:"can"`
	Machine string   `json:"machine"`
	Message string   `json:"message"`
	// Job is the last job on this machine; nil: there was none.
	Job *struct {
		Attempt string `json:"attempt"`
		State   string `json:"state"`
		Message string `json:"message"`
	} `json:"job"`
	// Successors are the provider IDs of the machines that replaced it.
	Successors []string `json:"successors"`
}

// parse reads an observation about the machine of the Node with that UID.
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
