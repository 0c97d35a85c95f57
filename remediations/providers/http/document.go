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

type machine struct {
	Node       string `json:"node"`
	UID        string `json:"uid"`
	ProviderID string `json:"providerID"`
	SystemUUID string `json:"systemUUID"`
	BootID     string `json:"bootID"`
}

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

// docs/http-request.schema.json describes the document.
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

const observe = "observe"

// The states of a machine, and the states of the receiver's last job on it.
const (
	running, off, gone, unknown = "running", "off", "gone", "unknown"
	working, done, failed       = "working", "done", "failed"
)

// For "gone" the answer is unknown, because the receiver may mean an earlier machine of this Node.
var runs = map[string]signs.Answer{running: signs.Well, off: signs.Ill, gone: signs.Unknown, unknown: signs.Unknown}

// docs/http-observation.schema.json describes the observation.
type observation struct {
	UID     string   `json:"uid"`
	Can     []string `json:"can"`
	Machine string   `json:"machine"`
	Message string   `json:"message"`
	// Job is the receiver's last job on this machine, or nil.
	Job *struct {
		Attempt string `json:"attempt"`
		State   string `json:"state"`
		Message string `json:"message"`
	} `json:"job"`
	// Successors has the provider IDs of the machines that replaced this one.
	Successors []string `json:"successors"`
}

// An answer with another UID is about another machine, for example from a cache, and is an error.
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
