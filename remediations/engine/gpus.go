package engine

// rememberGPUs keeps in the ledger the most GPUs that each machine was seen with. A GPU that falls off its bus leaves the Node's label,
// too, so nothing on the Node shows the loss later.
func (p *pass) rememberGPUs() {
	if p.ledger == nil || p.gpusSeen == p.fleet.GPUsVersion() {
		return
	}
	seen := p.roster.SeenGPUs(p.ledger)
	if seen != nil {
		l := p.ledger.Clone()
		l.GPUs = seen
		if p.save(l) != nil {
			return
		}
	}
	p.gpusSeen = p.fleet.GPUsVersion()
}
