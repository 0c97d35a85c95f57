package http

import (
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"testing"
	"time"

	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/testing/providertest"
)

func pemOf(c *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
}

var (
	machine1 = engine.Machine{Node: "node-1", UID: "u-1", ProviderID: "rack://1", SystemUUID: "4c4c4544-0042-3510-8054-b7c04f4d3332", BootID: "b-1", Attempt: "abcdef-0-1"}
	machine2 = engine.Machine{Node: "node-2", UID: "u-2", ProviderID: "rack://2", SystemUUID: "4c4c4544-0042-3510-8054-b7c04f4d3333", BootID: "b-2", Attempt: "fedcba-0-1"}
)

// TestConformance tests the provider against the contract of all providers, with a receiver that
// answers questions and with one that accepts only actions.
func TestConformance(t *testing.T) {
	const unlisted = "412 says nothing here: no request of this provider has a condition, and only the documented statuses are a refusal"
	for name, of := range map[string]struct {
		actuator  func(*Client) engine.Actuator
		not       map[string]string
		without   []string
		powersOff bool
	}{
		"reboot": {
			actuator: func(c *Client) engine.Actuator { return Action{c, "reboot"} },
			not:      map[string]string{"replacement": "nothing is replaced"},
		},
		"power off": {
			actuator:  func(c *Client) engine.Actuator { return NewPowerOff(c) },
			not:       map[string]string{"replacement": "nothing is replaced"},
			powersOff: true,
		},
		"replace": {
			actuator: func(c *Client) engine.Actuator { return NewReplacer(c) },
		},
		"reboot, no questions": {
			actuator: func(c *Client) engine.Actuator { return Action{c, "reboot"} },
			without:  []string{observe},
			not: map[string]string{
				"replacement": "nothing is replaced", "survey": "nobody answers questions", "testimony": "nobody answers questions",
				"a survey whose context ends": "nobody answers questions", "act": "the receiver itself looks, and refuses",
				"one look": "there is none", "every look": "there is none", "a look without an answer ends by itself": "there is none",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			not := map[string]string{"the change: answer 412": unlisted}
			for k, v := range of.not {
				not[k] = v
			}
			providertest.Run(t, providertest.Provider{
				DoesNotApply: not, PowersOff: of.powersOff,
				Start: func(t testing.TB, timeout time.Duration) providertest.World {
					return startWorld(t, timeout, of.actuator, of.without)
				},
			})
		})
	}
}

// startWorld is a receiver with two machines, behind a wire that misbehaves.
func startWorld(t testing.TB, timeout time.Duration, actuator func(*Client) engine.Actuator, without []string) providertest.World {
	r := newReceiver(t)
	serving, _ := certificate()
	wire := providertest.NewHTTP(t, providertest.HTTPOptions{
		Handler: r, TLS: serving,
		Changes: func(req *http.Request) bool { return req.URL.Path != "/observe" },
		Error: func(_ int, text string) (string, string) {
			body, _ := json.Marshal(map[string]string{"message": text})
			return "", string(body)
		},
	})
	again := func() engine.Actuator { return actuator(client(t, wire.URL(), timeout, without...)) }
	return providertest.World{
		Actuator: again(), Again: again, Wire: wire, Secrets: []string{token, secret},
		Machine: machine1, Neighbour: machine2, ID: "rack://1", NeighbourID: "rack://2",
		Changed: r.acted, Set: r.scene, Stage: r.stage, Power: r.power, Close: wire.Close,
		Refuses: map[string]func() engine.Machine{
			"it cannot": func() engine.Machine {
				r.mu.Lock()
				defer r.mu.Unlock()
				r.cannot["node-1"] = "it is in maintenance"
				return machine1
			},
			"a job is at work": func() engine.Machine {
				r.set(&box{id: "rack://1", node: "node-1", machine: running, job: working}, &box{id: "rack://2", node: "node-2", machine: running})
				return machine1
			},
		},
	}
}

func (r *receiver) scene(which providertest.Scene) engine.Machine {
	m, neighbour := machine1, &box{id: "rack://2", node: "node-2", machine: running}
	switch which {
	case providertest.NoMachine:
		r.set(neighbour)
	case providertest.TwoMachines:
		r.set(&box{id: "rack://1", node: "node-1", machine: running}, &box{id: "rack://3", node: "node-1", machine: running}, neighbour)
		m.ProviderID = "" // the ID would distinguish them
	case providertest.AnotherOfItsName:
		r.set(&box{id: "rack://3", node: "node-1", machine: running}, neighbour)
	case providertest.ItsIDIsAnothers:
		r.set(&box{id: "rack://1", node: "node-7", machine: running}, neighbour)
	}
	return m
}

func (r *receiver) power(on bool) {
	state := map[bool]string{true: running, false: off}[on]
	r.set(&box{id: "rack://1", node: "node-1", machine: state}, &box{id: "rack://2", node: "node-2", machine: running})
}

func (r *receiver) stage(which providertest.Stage) []string {
	old, neighbour := &box{id: "rack://1", node: "node-1", machine: running}, &box{id: "rack://2", node: "node-2", machine: running}
	fresh := []string{"rack://3"}
	switch which {
	case providertest.Wanted: // the provider promises another machine
	case providertest.OldLingers:
		r.set(old, neighbour)
	case providertest.NewFirst:
		old.successors = fresh
		r.set(old, neighbour)
	case providertest.Holes:
		old.machine, old.successors = unknown, fresh
		r.set(old)
	case providertest.Nothing:
		r.set()
	case providertest.OldGone:
		old.machine = gone
		r.set(old, neighbour)
	case providertest.NameAgain, providertest.Whole:
		old.machine, old.successors = gone, fresh
		r.set(old, neighbour)
	}
	return fresh
}
