package engine

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/config"
	"drydock.dev/drydock/remediations"
)

// polish is a remediation that Drydock does not ship. The core, the engine and the configuration
// need only this definition.
var polish = remediations.Remediation{
	Name: "polish", Verb: "polish", Disruptive: true, Once: true, Wait: 4 * time.Minute, Attempts: 2, Invasive: 1,
	Proof: func(intent *remediations.Intent, _ *remediations.NodeFacts, _ remediations.Answers) (bool, string) {
		if intent.Outcome != remediations.CallAccepted {
			return false, "the polisher never said that it was done"
		}
		return true, ""
	},
}

// polisher is the provider of the foreign remediation.
type polisher struct {
	w        *world
	polished []Machine
}

func (p *polisher) Act(_ context.Context, m Machine, mayStill func() error) (remediations.CallOutcome, error) {
	if err := mayStill(); err != nil {
		return remediations.CallRefused, err
	}
	p.w.do(func() {
		p.polished = append(p.polished, m)
		p.w.heal(m.Node)
	})
	return remediations.CallAccepted, nil
}

// configured reads a configuration whose only policy has the step, with the registry's remediations
// in addition to the shipped ones.
func configured(t *testing.T, step string, with remediations.Registry) (*remediations.Config, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(file, []byte(`
apiVersion: drydock.dev/v1alpha1
kind: Config
receiver: {listen: "127.0.0.1:9095"}
alertmanager: {urls: ["http://127.0.0.1:9093"]}
policies: [{name: strange, match: ['a="b"'], witness: none, plan: [{step: `+step+`}]}]
`), 0o600))
	capabilities := map[string]string{}
	for name := range with {
		capabilities[name] = ""
	}
	c, _, err := config.Load(file, config.Options{SkipFiles: true, Capabilities: capabilities, Registry: with})
	if err != nil {
		return nil, err
	}
	return c.Core, nil
}

// planOf is the plan of a policy that has the step, as the configuration reads it.
func planOf(t *testing.T, step remediations.Remediation) []remediations.Step {
	t.Helper()
	_, err := configured(t, step.Name, nil)
	require.ErrorContains(t, err, "there is no remediation", "the control")
	c, err := configured(t, step.Name, remediations.Registry{step.Name: step})
	require.NoError(t, err)
	return c.Policy("strange").Plan
}

// TestAStrangersRemediationIsOneFileAndOneLine: a foreign remediation is configured, decided,
// issued once through its own provider, and proven. Its defaults are in the schema. Without the
// provider's line it is held.
func TestAStrangersRemediationIsOneFileAndOneLine(t *testing.T) {
	for name, provided := range map[string]bool{"with its provider": true, "control: without": false} {
		t.Run(name, func(t *testing.T) {
			c := modelConfig()
			c.Policies[0].Plan = planOf(t, polish)
			require.Equal(t, []remediations.Step{{Name: polish.Name, Wait: polish.Wait, Attempts: polish.Attempts}}, c.Policies[0].Plan, "as it says itself")
			c.Provided = map[string]bool{"polish": provided}
			inWorld(t, c, 6, func(t *testing.T, w *world) {
				p := &polisher{w: w}
				w.actuators = map[string]Actuator{"polish": p}
				w.start()
				w.pass(16 * time.Second)
				w.do(func() {
					w.ail("n0", 1)
					w.post("n0", remediations.StatusFiring)
				})
				w.pass(3 * time.Minute)
				history := at(w, func() []remediations.Entry { return modelRegistry.ReadJournal(w.nodes["n0"]).History })
				if !provided {
					require.Empty(t, p.polished)
					require.Empty(t, history)
					return
				}
				require.Len(t, p.polished, 1)
				require.Equal(t, "n0", p.polished[0].Node)
				require.Len(t, history, 1)
				require.Equal(t, remediations.OutcomeRecovered, history[0].Outcome, history[0].Why)
				require.Equal(t, []string{"polish:1"}, history[0].Steps.Texts())
			})
		})
	}
}
