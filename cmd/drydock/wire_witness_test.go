package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/lab/civosim"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/civo"
	"drydock.dev/drydock/remediations/engine"
)

// TestCivoTestifies: only Civo's word that the machine's own instance does not run shows a fault. A machine that Civo does not know
// or is at work on, and no answer, show nothing.
func TestCivoTestifies(t *testing.T) {
	for name, test := range map[string]struct {
		status  string
		machine string // its provider ID
		answer  remediations.Answer
		saw     string
	}{
		"it runs":                   {"ACTIVE", "civo://i-1", remediations.Well, `Civo says that the instance is "ACTIVE"`},
		"it is off":                 {"SHUTOFF", "civo://i-1", remediations.Ill, `Civo says that the instance is "SHUTOFF"`},
		"it is stopped":             {"STOPPED", "civo://i-1", remediations.Ill, `Civo says that the instance is "STOPPED"`},
		"it is rebooting":           {"REBOOTING", "civo://i-1", remediations.Unknown, `Civo says that the instance is "REBOOTING"`},
		"a status of another day":   {"PONDERING", "civo://i-1", remediations.Unknown, `Civo says that the instance is "PONDERING"`},
		"another machine is not it": {"SHUTOFF", "civo://i-2", remediations.Unknown, "Civo did not say whether the instance runs"},
	} {
		t.Run(name, func(t *testing.T) {
			sim, err := civosim.New(civosim.Options{ClusterID: "c", Region: "r", APIKey: "k", Instances: []civosim.Instance{{ID: "i-1", Hostname: "n1", Status: test.status}}})
			require.NoError(t, err)
			defer sim.Close()
			key := filepath.Join(t.TempDir(), "key")
			require.NoError(t, os.WriteFile(key, []byte("k"), 0o600))
			client, err := civo.New(civo.Options{
				APIURL: sim.URL(), ClusterID: "c", Region: "r", APIKeyFile: key, Timeout: time.Minute, IssueWithin: time.Minute, Backoff: time.Millisecond,
			})
			require.NoError(t, err)
			said := civoWitness{client}.Testify(t.Context(), engine.Machine{Node: "n1", ProviderID: test.machine}, remediations.Sign{Kind: remediations.SignNotRunning})
			require.Equal(t, test.answer, said.Answer, said.Saw)
			require.Contains(t, said.Saw, test.saw)
		})
	}
}
