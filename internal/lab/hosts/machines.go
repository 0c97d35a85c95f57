package hosts

import (
	"context"
	"fmt"

	"drydock.dev/drydock/internal/lab/civosim"
)

// Machines returns the hosts as the machines of a simulated provider. A reboot switches a host's
// power off and on, which also ends the effect of DieAgainAfterEachRestart.
func (h *Hosts) Machines() civosim.Machines { return machines{h} }

type machines struct{ hosts *Hosts }

func (m machines) Away(_ context.Context, in civosim.Instance) error {
	m.hosts.Host(in.Hostname).Off()
	return nil
}

// Reboot switches the host on. The host has its own boot ID, so the provider's does not matter.
// Neither does cured: a fault on the disk stays.
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
