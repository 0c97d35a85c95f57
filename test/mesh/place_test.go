package mesh

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/lab/mesh"
)

// Most tests use a fifth of the shipped times: agents, rules and Prometheus then take 2 s in place
// of 10 s.
const (
	quickRound = 2 * time.Second
	quickFor   = 8 * time.Second
)

var rules = []string{"../../rules/MeshLeaderDegraded.yaml", "../../rules/MeshForwardingFault.yaml"}

// place is a lab with a mesh and running agents.
type place struct {
	network *mesh.Network
	lab     *lab.Lab
	agents  *mesh.Agents
	token   string
	// admission is the admission that Drydock serves. If it is nil, Drydock serves none.
	admission *lab.Admission
}

// places are used by one test after the other. Tests mostly wait for clocks, so three of them run
// at the same time on two cores, and tests with a place of their own beside them.
var places = make(chan *place, 3)

func TestMain(m *testing.M) {
	// All tests begin at the same time, and wait for a place.
	if err := flag.Set("test.parallel", "100"); err != nil {
		panic(err)
	}
	for range cap(places) {
		places <- &place{}
	}
	m.Run() // TestMain passes the result on itself
	leaked := false
	for range cap(places) {
		p := <-places
		if p.lab != nil {
			leaks, err := p.lab.Leaks(context.Background())
			if err != nil || len(leaks) > 0 {
				fmt.Fprintln(os.Stderr, "the lab's secrets:", strings.Join(leaks, "; "), err)
				p.lab.Keep()
				leaked = true
			}
		}
		p.close()
	}
	if leaked {
		os.Exit(1)
	}
}

// build makes the network, and a lab that has the network's nodes and scrapes its agents.
func (p *place) build(ctx context.Context, network *mesh.Network, o lab.Options) error {
	p.network = network
	job, err := network.Scraped("drydock-agent", mesh.MetricsPort)
	if err != nil {
		return err
	}
	o.NodeSpecs, o.RuleFiles = network.Specs(), rules
	for i := range o.NodeSpecs {
		o.NodeSpecs[i].ProviderID = "civo://" + uuid.NewString()
	}
	o.ScrapeConfigs = []map[string]any{job}
	p.lab, err = lab.Start(ctx, o)
	return err
}

func (p *place) close() {
	if p.network != nil {
		p.network.Close()
	}
	if p.lab != nil {
		p.lab.Stop()
	}
}

// settle starts what is used by several tests: Drydock's rights and the agents.
func (p *place) settle(ctx context.Context, interval time.Duration) (err error) {
	if p.agents != nil {
		return nil
	}
	values := map[string]any{"admission": map[string]any{"policy": map[string]any{"enabled": false}}, "config": map[string]any{"providers": p.providers()}}
	if p.admission != nil {
		values = p.admission.Values(map[string]any{"mode": "enforce", "providers": p.providers()})
	}
	// The chart is needed for the agents' rights. It starts no pods, because the agents are
	// processes.
	values["agent"] = map[string]any{"enabled": true, "nodeSelector": map[string]any{"drydock.dev/lab": "elsewhere"}}
	if p.token, err = p.lab.PrepareDrydockWith(ctx, values); err != nil {
		return err
	}
	p.agents, err = p.network.StartAgents(ctx, p.lab, mesh.AgentOptions{Account: "drydock-agent", Interval: interval})
	return err
}

func (p *place) providers() map[string]any {
	return map[string]any{"kilo": map[string]any{"prometheus": []string{p.lab.PrometheusURL()}}}
}

// keepOnFailure keeps the logs of a failed test and prints where they are.
func (p *place) keepOnFailure(t *testing.T) {
	t.Cleanup(func() {
		if t.Failed() {
			p.lab.Keep()
			t.Logf("the lab's logs: %s", p.lab.LogDir())
		}
	})
}

// turn returns a place that no other test uses until this test ends. It builds the place if needed.
func turn(t *testing.T) *place {
	t.Helper()
	mesh.Need(t)
	t.Parallel()
	p := <-places
	t.Cleanup(func() { places <- p })
	return p
}

// newYard returns a yard in a shared place. west-1 leads because of an annotation, and the other
// leaders lead because of their names.
func newYard(t *testing.T) *yard {
	t.Helper()
	p := turn(t)
	if p.lab == nil {
		p.close() // the test has failed before there was a lab
		network, err := mesh.New()
		require.NoError(t, err)
		require.NoError(t, p.build(context.WithoutCancel(t.Context()), network, quickLab()))
	}
	p.keepOnFailure(t)
	return p.yard(t, 0, quickRound)
}

// quickLab returns the options of a lab with a fifth of the shipped times, or less.
func quickLab() lab.Options {
	ruleFor := quickFor
	return lab.Options{RuleFor: &ruleFor, Interval: quickRound}
}

// own describes how a place differs from the shared ones.
type own struct {
	network   func(...mesh.Location) (*mesh.Network, error)
	lab       lab.Options
	checkIn   time.Duration // of Kilo's agents; the default is that of the shared places
	interval  time.Duration // of Drydock's agents; the default is their own
	admission bool
}

// newYardOf returns a yard in a place of its own.
func newYardOf(t *testing.T, o own, locations ...mesh.Location) *yard {
	t.Helper()
	network, err := o.network(locations...)
	require.NoError(t, err)
	t.Cleanup(network.Close)
	p := &place{}
	if o.admission {
		p.admission, err = lab.NewAdmission(nil)
		require.NoError(t, err)
	}
	require.NoError(t, p.build(context.WithoutCancel(t.Context()), network, o.lab))
	t.Cleanup(p.lab.Stop)
	p.keepOnFailure(t)
	return p.yard(t, o.checkIn, o.interval)
}
