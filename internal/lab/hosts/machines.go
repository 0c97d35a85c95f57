package hosts

import (
	"context"
	"fmt"

	"drydock.dev/drydock/internal/lab/civosim"
)

// Machines are the hosts as a provider has them: its reboot takes a host's power away and gives it back, and what
// DieAgainAfterEachRestart began does not outlive that.
func (h *Hosts) Machines() civosim.Machines { return machines{h} }

type machines struct{ hosts *Hosts }

func (m machines) Away(_ context.Context, in civosim.Instance) error {
	m.hosts.Host(in.Hostname).Off()
	return nil
}

// Reboot gives the host a boot ID of its own, not the one that the provider thought of. What was wrong with its disk is
// still wrong, whatever the provider thought of that.
func (m machines) Reboot(ctx context.Context, in civosim.Instance, _ string, _ bool) error {
	host := m.hosts.Host(in.Hostname)
	if err := host.LiveAgain(); err != nil {
		return err
	}
	return host.On(ctx)
}

func (machines) Remove(_ context.Context, in civosim.Instance) error {
	return fmt.Errorf("removing host %s: these hosts are not replaced", in.Hostname)
}

func (machines) Add(_ context.Context, in civosim.Instance) error {
	return fmt.Errorf("adding host %s: these hosts are not replaced", in.Hostname)
}
