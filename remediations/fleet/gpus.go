package fleet

import (
	"maps"

	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/signs"
)

// expectedGPUs takes the larger of two numbers: from the node's label or repair record, and from
// the ledger.
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

// LedgerGPUs returns the ledger's numbers that were last used, by the machine's key.
func (r *Roster) LedgerGPUs() map[string]int { return r.ledgerGPUs }

// SeenGPUs returns the new numbers of GPUs for the ledger, by the machine's key, or nil if no
// machine has more than before.
//
// While there is room, machines without a Node stay, because a cloud may delete the Node of a
// machine that restarts. If two Nodes claim the same machine, both are ignored: a kubelet may have
// copied the spec.providerID of another Node.
func (r *Roster) SeenGPUs(l *ledger.Ledger) map[string]int {
	known, grown := map[string]int{}, map[string]int{}
	for name := range r.gpus {
		n := r.members[name].Node
		if gpus, _ := signs.WholeGPUs(n); gpus > l.GPUsOf(n) && r.Twin(n) == "" {
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
