package fleet

import (
	"maps"

	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/signs"
)

// expectedGPUs are how many GPUs each GPU node must offer: as many as its label or its record says, or as the ledger has seen on its
// machine.
func (r *Roster) expectedGPUs(l *ledger.Ledger) map[string]int {
	if r.shown != nil && maps.Equal(r.ledgerGPUs, l.GPUs) {
		return r.shown
	}
	r.ledgerGPUs, r.shown = l.GPUs, make(map[string]int, len(r.gpus))
	for name, gpus := range r.gpus {
		r.shown[name] = max(gpus, l.GPUsOf(r.members[name].Node))
	}
	r.gpusVersion++
	return r.shown
}

// LedgerGPUs are those of the ledger by which the fleet was counted last.
func (r *Roster) LedgerGPUs() map[string]int { return r.ledgerGPUs }

// SeenGPUs is what the ledger must remember instead, because a machine has more GPUs than it remembers; nil: none has. Where there is
// no room for all, it leaves out the machines that have no Node. A cloud may delete the Node of a machine that restarts and comes back.
// What a Node says of a machine that another Node has, too, does not count: a kubelet may have copied that Node's spec.providerID.
func (r *Roster) SeenGPUs(l *ledger.Ledger) map[string]int {
	known, grown := map[string]int{}, map[string]int{}
	for name := range r.gpus {
		n := r.members[name].Node
		if gpus, whole := signs.WholeGPUs(n); whole && gpus > l.GPUsOf(n) && r.Twin(n) == "" {
			grown[ledger.GPUMachine(n)] = gpus
		}
	}
	if len(grown) == 0 {
		return nil
	}
	if len(l.GPUs)+len(grown) <= ledger.GPUsMost {
		maps.Copy(known, l.GPUs)
	} else {
		for _, m := range r.members {
			if machine := ledger.GPUMachine(m.Node); l.GPUs[machine] > 0 {
				known[machine] = l.GPUs[machine]
			}
		}
	}
	news := false
	for machine, gpus := range grown {
		if _, there := known[machine]; there || len(known) < ledger.GPUsMost {
			known[machine], news = gpus, true
		}
	}
	if !news {
		return nil
	}
	return known
}
