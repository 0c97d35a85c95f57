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

// Most tests run with a fifth of the shipped times: what takes the agents, the rules and Prometheus
// 10 s takes them 2 s.
const (
	quickRound = 2 * time.Second
	quickFor   = 8 * time.Second
)

var rules = []string{"../../rules/MeshLeaderDegraded.yaml", "../../rules/MeshForwardingFault.yaml"}

// place is a lab with a mesh in it, and agents.
type place struct {
	network *mesh.Network
	lab     *lab.Lab
	agents  *mesh.Agents
	token   string
	// admission is what Drydock serves to the API server; nil: nothing.
	admission *lab.Admission
}

// places are those that one test after the other has for itself. Tests wait for clocks far more
// than they compute, so three run at once on two cores, and those with a place of their own beside
// them.
var places = make(chan *place, 3)

func TestMain(m *testing.M) {
	// All begin at once, and wait for a place.
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

// build makes the network, and a lab with the network's nodes that scrapes its agents.
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

// settle starts what outlives a test: Drydock's rights and the agents.
func (p *place) settle(ctx context.Context, interval time.Duration) (err error) {
	if p.agents != nil {
		return nil
	}
	values := map[string]any{"admission": map[string]any{"policy": map[string]any{"enabled": false}}, "config": map[string]any{"providers": p.providers()}}
	if p.admission != nil {
		values = p.admission.Values(map[string]any{"mode": "enforce", "providers": p.providers()})
	}
	// Its rights are wanted, and no pods: the agents are processes.
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

// keepOnFailure keeps the logs of a failed test and says where they are.
func (p *place) keepOnFailure(t *testing.T) {
	t.Cleanup(func() {
		if t.Failed() {
			p.lab.Keep()
			t.Logf("the lab's logs: %s", p.lab.LogDir())
		}
	})
}

// turn is a place that no other test has until the test ends; it may be one that is not built yet.
func turn(t *testing.T) *place {
	t.Helper()
	mesh.Need(t)
	t.Parallel()
	p := <-places
	t.Cleanup(func() { places <- p })
	return p
}

// newYard is a yard in a place that tests share. west-1 leads by an annotation, the others by their
// names.
func newYard(t *testing.T) *yard {
	t.Helper()
	p := turn(t)
	if p.lab == nil {
		p.close() // of a test that failed before there was a lab
		network, err := mesh.New()
		require.NoError(t, err)
		require.NoError(t, p.build(context.WithoutCancel(t.Context()), network, quickLab()))
	}
	p.keepOnFailure(t)
	return p.yard(t, 0, quickRound)
}

// quickLab is a lab with a fifth of the shipped times, or less.
func quickLab() lab.Options {
	ruleFor := quickFor
	return lab.Options{RuleFor: &ruleFor, Interval: quickRound}
}

// own says how a place differs from those that tests share.
type own struct {
	network   func(...mesh.Location) (*mesh.Network, error)
	lab       lab.Options
	checkIn   time.Duration // of Kilo's agents; zero: as in the shared places
	interval  time.Duration // of Drydock's agents; zero: their own
	admission bool
}

// newYardOf is a yard in a place of its own.
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
