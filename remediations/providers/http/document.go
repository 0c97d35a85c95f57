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

// machine has the Node's data about its machine.
type machine struct {
	Node       string `json:"node"`
	UID        string `json:"uid"`
	ProviderID string `json:"providerID"`
	SystemUUID string `json:"systemUUID"`
	BootID     string `json:"bootID"`
}

// documentOf returns the document that requests the action.
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

// document is the JSON document for a receiver, in the form of docs/http-request.schema.json.
type document struct {
	Version string `json:"version"`
	Action  string `json:"action"`
	machine
	// Attempt and the fields after it are empty in an observe request.
	Attempt string `json:"attempt,omitempty"`
	// Soft requests a restart by the operating system instead of a power cycle.
	Soft     bool      `json:"soft,omitempty"`
	Policy   string    `json:"policy,omitempty"`
	Alert    *alert    `json:"alert,omitempty"`
	Deadline time.Time `json:"deadline,omitzero"`
}

type alert struct {
	Name   string            `json:"name"`
	Labels map[string]string `json:"labels"`
}

// observe is the action that requests the machine's state and changes nothing.
const observe = "observe"

// States of the machine and of its last job in an observation.
const (
	running, off, gone, unknown = "running", "off", "gone", "unknown"
	working, done, failed       = "working", "done", "failed"
)

// runs maps each state of the machine to the answer whether it runs. For "gone" the answer is
// unknown, because it is not certain that the receiver means the Node's present machine.
var runs = map[string]signs.Answer{running: signs.Well, off: signs.Ill, gone: signs.Unknown, unknown: signs.Unknown}

// observation is the receiver's answer about a machine, in the form of
// docs/http-observation.schema.json.
type observation struct {
	UID     string   `json:"uid"`
	Can     []string `json:"can"`
	Machine string   `json:"machine"`
	Message string   `json:"message"`
	// Job is the last job on this machine. It is nil if there was no job.
	Job *struct {
		Attempt string `json:"attempt"`
		State   string `json:"state"`
		Message string `json:"message"`
	} `json:"job"`
	// Successors has the provider IDs of the machines that replaced this one.
	Successors []string `json:"successors"`
}

// parse decodes an observation. Its uid must be that of the Node in the request: an answer about
// another machine, for example from a cache, has another one.
func parse(body []byte, uid string) (o observation, err error) {
	err = json.Unmarshal(body, &o)
	switch {
	case err != nil:
	case o.UID != uid:
		err = fmt.Errorf("the answer's uid is %.60q, but the request was about %q", o.UID, uid)
	case o.Can == nil:
		err = errors.New("the answer has no can; write an empty list if no action is possible")
	case runs[o.Machine] == "":
		err = fmt.Errorf("the answer's machine is %.60q; it must be %s, %s, %s or %s", o.Machine, running, off, gone, unknown)
	case o.Job != nil && !slices.Contains([]string{working, done, failed}, o.Job.State):
		err = fmt.Errorf("the answer's job.state is %.60q; it must be %s, %s or %s", o.Job.State, working, done, failed)
	}
	return o, err
}
