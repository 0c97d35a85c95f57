package civosim

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"time"
)

// Instance is one machine, as Civo's list shows it.
type Instance struct {
	ID       string // a UUID, as at the real Civo
	Hostname string // the Node's name
	Pool     string // the ID of the node pool
	Status   string // ACTIVE, BUILDING or DELETING
	// Replaces is the ID of the machine that this one replaced in a recycle, if any.
	Replaces string
}

// ProviderID is the spec.providerID of the instance's Node.
func (in Instance) ProviderID() string { return "civo://" + in.ID }

// Machines applies to the cluster what happens to the simulated machines. Its methods are called in
// the background, with contexts that end when the simulator closes. Errors go to Options.Logf.
type Machines interface {
	// Away is called when the machine goes down for a reboot.
	Away(ctx context.Context, in Instance) error
	// Reboot is called when the machine is back after a reboot, with a new boot ID. If cured is
	// false, it still has its old fault.
	Reboot(ctx context.Context, in Instance, bootID string, cured bool) error
	// Remove is called when the machine was deleted: its Node must be removed.
	Remove(ctx context.Context, in Instance) error
	// Add is called when a new machine is up. Its Node has a UID of its own, even if the hostname
	// existed before.
	Add(ctx context.Context, in Instance) error
}

// Instances returns the current machines, in the order of the API's list.
func (s *Server) Instances() []Instance {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.instances)
}

// The caller must hold mu, or no other goroutine may run yet.
func (s *Server) admit(in Instance) Instance {
	if in.ID == "" {
		in.ID = randomID()
	}
	if in.Pool == "" {
		in.Pool = "pool-1"
	}
	if in.Status == "" {
		in.Status = "ACTIVE"
	}
	if s.pool(in.Pool) == nil {
		s.pools = append(s.pools, &pool{id: in.Pool})
	}
	s.instances = append(s.instances, in)
	s.created[in.ID] = s.o.Now()
	return in
}

// count is the number of machines that was requested. A recycle does not change it.
type pool struct {
	id    string
	count int
}

// pool returns nil if there is none. The caller must hold mu, or no other goroutine may run yet.
func (s *Server) pool(id string) *pool {
	i := slices.IndexFunc(s.pools, func(p *pool) bool { return p.id == id })
	if i < 0 {
		return nil
	}
	return s.pools[i]
}

// The caller holds mu.
func (s *Server) find(match func(Instance) bool) (Instance, bool) {
	i := slices.IndexFunc(s.instances, match)
	if i < 0 {
		return Instance{}, false
	}
	return s.instances[i], true
}

// anyOf also returns an instance elsewhere in the account. The caller must hold mu.
func (s *Server) anyOf(id string) (Instance, bool) {
	in, found := s.find(func(in Instance) bool { return in.ID == id })
	if i := slices.IndexFunc(s.o.Elsewhere, func(in Instance) bool { return in.ID == id }); !found && i >= 0 {
		return s.o.Elsewhere[i], true
	}
	return in, found
}

// The machine comes up after RebootTime. The caller must hold mu.
func (s *Server) reboot(in Instance, op Op) {
	s.later(0, "taking "+in.Hostname+" down", func(m Machines) error {
		err := m.Away(s.stopping, in)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.later(s.o.RebootTime, "rebooting "+in.Hostname, func(m Machines) error {
			return m.Reboot(s.stopping, in, randomID(), s.o.Cures == nil || s.o.Cures(in, op))
		})
		return err
	})
}

// Both machines are in the list until the old one is gone. The new one joins only after the Node of
// the old one is removed, because both may have the same name. The caller must hold mu.
func (s *Server) replace(old Instance) Instance {
	s.mark(old.ID, "DELETING")
	fresh := s.admit(Instance{Hostname: s.o.Rename(old), Pool: old.Pool, Status: "BUILDING", Replaces: old.ID})
	s.later(s.o.DeleteTime, "recycling "+old.Hostname, func(m Machines) error {
		s.mu.Lock()
		s.drop(old.ID)
		s.mu.Unlock()
		err := m.Remove(s.stopping, old)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.join(fresh)
		return err
	})
	return fresh
}

// The caller holds mu.
func (s *Server) mark(id, status string) {
	for i := range s.instances {
		if s.instances[i].ID == id {
			s.instances[i].Status = status
		}
	}
}

// The caller holds mu.
func (s *Server) drop(id string) {
	s.instances = slices.DeleteFunc(s.instances, func(have Instance) bool { return have.ID == id })
}

// The caller holds mu.
func (s *Server) remove(in Instance) {
	s.drop(in.ID)
	s.later(0, "removing "+in.Hostname, func(m Machines) error { return m.Remove(s.stopping, in) })
}

// The machine becomes ACTIVE after BuildTime. The caller must hold mu.
func (s *Server) build(hostname, pool string) Instance {
	in := s.admit(Instance{Hostname: hostname, Pool: pool, Status: "BUILDING"})
	s.join(in)
	return in
}

// The machine becomes ACTIVE after BuildTime. The caller holds mu.
func (s *Server) join(in Instance) {
	s.later(s.o.BuildTime, "adding "+in.Hostname, func(m Machines) error {
		up, there := s.activate(in.ID)
		if !there {
			return nil // deleted while it was being built
		}
		return m.Add(s.stopping, up)
	})
}

func (s *Server) activate(id string) (Instance, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.instances {
		if s.instances[i].ID == id {
			s.instances[i].Status = "ACTIVE"
			return s.instances[i], true
		}
	}
	return Instance{}, false
}

// Machines is called after the delay, unless the simulator is closed first. The caller must hold
// mu.
func (s *Server) later(wait time.Duration, what string, call func(Machines) error) {
	if s.closed {
		return
	}
	s.work.Go(func() {
		over := s.o.After
		if over == nil {
			timer := time.NewTimer(wait)
			defer timer.Stop()
			over = func(time.Duration) <-chan time.Time { return timer.C }
		}
		select {
		case <-s.stopping.Done():
			return
		case <-over(wait):
		}
		machines := s.o.Machines
		if machines == nil {
			machines = noMachines{}
		}
		if err := call(machines); err != nil && s.stopping.Err() == nil {
			s.o.Logf("civosim: %s: %v", what, err)
		}
	})
}

type noMachines struct{}

func (noMachines) Away(context.Context, Instance) error                 { return nil }
func (noMachines) Reboot(context.Context, Instance, string, bool) error { return nil }
func (noMachines) Remove(context.Context, Instance) error               { return nil }
func (noMachines) Add(context.Context, Instance) error                  { return nil }

// A UUID of version 4, the form of Civo's IDs and of Linux's boot IDs.
func randomID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // rand.Read never returns an error: if it fails, the process ends
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
