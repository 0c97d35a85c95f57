package engine

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// readNodes reads only the changed Nodes, if the Fleet can report them.
func (e *Engine) readNodes(ctx context.Context) error {
	var nodes []*corev1.Node
	var gone []string
	some := false
	if fleet, can := e.Fleet.(Changing); can {
		nodes, gone, some = fleet.Changed(ctx)
	}
	if !some || !e.listedOnce {
		all, err := e.Fleet.Nodes(ctx)
		e.listedOnce = err == nil
		if err != nil {
			return err
		}
		e.compareNodes(all, nil)
		if len(e.wrote) > 0 {
			all = slices.Clone(all) // a copy, because the slice belongs to the Fleet
		}
		all = e.caughtUp(all)
		e.forgetOthers(all)
		e.roster.Read(all)
		for name := range e.memory {
			if e.roster.Node(name) == nil {
				e.forget(name)
			}
		}
		return nil
	}
	e.compareNodes(nodes, gone)
	nodes = append(e.caughtUp(nodes), e.unseen()...)
	e.forgetOthers(nodes)
	e.roster.Change(nodes, gone)
	for _, n := range nodes {
		if m := e.memory[n.Name]; m != nil && m.readOf != nil {
			e.journal(n) // otherwise the memory would keep an older version of the Node for a long time after a storm
		}
	}
	for _, name := range gone {
		e.forget(name)
	}
	return nil
}

func (e *Engine) caughtUp(nodes []*corev1.Node) []*corev1.Node {
	if len(e.wrote) == 0 {
		return nodes
	}
	for i, n := range nodes {
		if m := e.wrote[n.Name]; m != nil && m.written.UID == n.UID && older(n, m.written) {
			nodes[i] = m.written
		} else if m != nil {
			e.caught(n.Name, m)
		}
	}
	return nodes
}

func (e *Engine) unseen() (nodes []*corev1.Node) {
	for name, m := range e.wrote {
		n := e.roster.Node(name)
		if n == nil || n.UID != m.written.UID || !older(m.over, m.written) { // a write that changed nothing causes no watch event
			e.caught(name, m)
			continue
		}
		nodes = append(nodes, m.written)
	}
	return nodes
}

func (e *Engine) caught(name string, m *memory) {
	m.written, m.over = nil, nil
	delete(e.wrote, name)
}

// forgetOthers drops the memory of Nodes that were deleted and created again under the same name.
func (e *Engine) forgetOthers(nodes []*corev1.Node) {
	for _, n := range nodes {
		if m := e.memory[n.Name]; m != nil && m.readOf != nil && m.readOf.UID != n.UID {
			e.forget(n.Name)
		}
	}
}

func (e *Engine) forget(name string) {
	if m := e.memory[name]; m != nil {
		m.stopWork()
		delete(e.memory, name)
		delete(e.wrote, name)
	}
}

func (e *Engine) latest(n *corev1.Node) *corev1.Node {
	if m := e.memory[n.Name]; m != nil && m.written != nil {
		return m.written
	}
	return n
}

// older is false if the versions cannot be compared. That is safe: the next write is checked
// against the version anyway.
func older(a, b *corev1.Node) bool { return olderVersion(a.ResourceVersion, b.ResourceVersion) }
