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

// machine has the data that a Node shows about its machine. The receiver uses this data to find the
// machine.
type machine struct {
	Node       string `json:"node"`
	UID        string `json:"uid"`
	ProviderID string `json:"providerID"`
	SystemUUID string `json:"systemUUID"`
	BootID     string `json:"bootID"`
}

// documentOf returns the document that requests the action (reboot, powerOff or replace) from the
// receiver.
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

// document is the JSON document that Drydock sends to the receiver. docs/http-request.schema.json
// describes it.
type document struct {
	Version string `json:"version"`
	Action  string `json:"action"`
	machine
	// Attempt and the fields after it are empty if the action is observe.
	Attempt string `json:"attempt,omitempty"`
	// Soft requests a restart by the operating system. Otherwise the machine's power is cut.
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

// The states of a machine, and the states of the receiver's last job on it.
const (
	running, off, gone, unknown = "running", "off", "gone", "unknown"
	working, done, failed       = "working", "done", "failed"
)

// runs has, for each state of the machine, the answer to "does the machine run?". For "gone" the
// answer is unknown, because the receiver may mean an earlier machine of this Node.
var runs = map[string]signs.Answer{running: signs.Well, off: signs.Ill, gone: signs.Unknown, unknown: signs.Unknown}

// observation is the receiver's answer about a machine. docs/http-observation.schema.json describes
// it.
type observation struct {
	UID     string   `json:"uid"`
	Can     []string `json:"can"`
	Machine string   `json:"machine"`
	Message string   `json:"message"`
	// Job is the receiver's last job on this machine. It is nil if there was no job.
	Job *struct {
		Attempt string `json:"attempt"`
		State   string `json:"state"`
		Message string `json:"message"`
	} `json:"job"`
	// Successors has the provider IDs of the machines that replaced this one.
	Successors []string `json:"successors"`
}

// parse decodes and checks an observation. uid is the UID of the Node in the request. If the answer
// has another UID, it is about another machine, for example from a cache, and parse returns an
// error.
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
