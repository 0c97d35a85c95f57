package fence

import (
	"context"
	"fmt"
	"testing"
	"time"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/testing/providertest"
)

// forgetful is a provider whose record lost what the survey kept.
type forgetful struct{ Rebooter }

func (f forgetful) Survey(ctx context.Context, m engine.Machine) remediations.Survey {
	said := f.Rebooter.Survey(ctx, m)
	said.Before = ""
	return said
}

// TestConformance tests the provider against the contract of all providers: with one device for
// all machines and with a device for each, and with and without what the survey kept.
func TestConformance(t *testing.T) {
	const began = "an agent that was started may have reached its device, whatever it says"
	not := map[string]string{"replacement": "nothing is replaced", "the change: nobody listens": began}
	for _, status := range []int{400, 401, 403, 404, 409, 412, 429} {
		not[fmt.Sprintf("the change: answer %d", status)] = began
	}
	straight := map[string]string{"every look": "the survey has looked", "one look": "the survey has looked", "a look without an answer ends by itself": "the survey has looked"}
	for name, of := range map[string]struct{ perMachine, forgets, powersOff bool }{
		"one device": {}, "one device, without the survey": {forgets: true}, "a device for each": {perMachine: true, forgets: true},
		"switched off for good": {powersOff: true},
	} {
		t.Run(name, func(t *testing.T) {
			why := map[string]string{}
			for k, v := range not {
				why[k] = v
			}
			if !of.forgets {
				for k, v := range straight {
					why[k] = v
				}
			}
			providertest.Run(t, providertest.Provider{
				DoesNotApply: why, PerMachine: of.perMachine, PowersOff: of.powersOff,
				Start: func(t testing.TB, timeout time.Duration) providertest.World {
					return startWorld(t, timeout, of.perMachine, of.forgets, of.powersOff)
				},
			})
		})
	}
}

// startWorld is a device with two machines.
func startWorld(t testing.TB, timeout time.Duration, perMachine, forgets, powersOff bool) providertest.World {
	d := newDevice(t)
	again := func() engine.Actuator {
		r := NewRebooter(d.client(timeout, perMachine))
		switch {
		case powersOff:
			return NewPowerOff(r.Client)
		case forgets:
			return forgetful{r}
		}
		return r
	}
	refuses := map[string]func() engine.Machine{
		"it is off": func() engine.Machine {
			d.set(func() { d.on["1"] = false })
			return machine1
		},
	}
	if powersOff {
		clear(refuses) // that is what the step is to bring about
	}
	return providertest.World{
		Actuator: again(), Again: again, Wire: d, Secrets: []string{secret}, Machine: machine1, Neighbour: machine2, ID: "1", NeighbourID: "2",
		Changed: d.off, Close: d.Close, Power: func(on bool) { d.set(func() { d.on["1"] = on }) },
		Set: func(which providertest.Scene) engine.Machine {
			m := machine1
			d.set(func() {
				switch which {
				case providertest.NoMachine:
					m.Node, m.SystemUUID = "node-9", "4c4c4544-0042-3510-8054-b7c04f4d3339"
				case providertest.TwoMachines:
					d.nodes = append(d.nodes, node("node-7", uuid1))
				case providertest.AnotherOfItsName:
					m.SystemUUID = "4c4c4544-0042-3510-8054-b7c04f4d3339"
				case providertest.ItsIDIsAnothers:
					m.SystemUUID = uuid2
				}
			})
			return m
		},
		Refuses: refuses,
	}
}
