package config

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTypingMistakesAreReported: each of these was taken without a word, and then nothing happened,
// or too early. The control is the configuration without a slip.
func TestTypingMistakesAreReported(t *testing.T) {
	const head = "apiVersion: drydock.dev/v1alpha1\nkind: Config\nreceiver: {tokenFile: token}\n"
	policy := func(match, wait string) string {
		return head + "alertmanager: {urls: [http://a:9093/prefix]}\npolicies:\n- name: mine\n  match: ['" + match + "']\n  plan: [{step: reboot, wait: " + wait + "}]\n"
	}
	for name, tc := range map[string]struct{ text, says string }{
		"none":                                   {policy(`remediation="mine"`, "10m"), ""},
		"a quote within a value is its own":      {policy(`remediation="it\u2019s"`, "10m"), ""},
		"typographic quotes":                     {policy("remediation=\u201cmine\u201d", "10m"), "policies[0].match[0]: the value of remediation is in typographic quotes"},
		"a wait of seconds":                      {policy(`remediation="mine"`, "5s"), "warning: policies[0].plan[0].wait: a wait of 5s for step reboot is very short"},
		"a wait of weeks":                        {policy(`remediation="mine"`, "1000h"), "warning: policies[0].plan[0].wait: a wait of 1000h for step reboot is very long"},
		"the path of the API":                    {head + "alertmanager: {urls: [http://a:9093/api/v2/]}\n", "alertmanager.urls[0]: ends with /api/v2, which Drydock appends itself"},
		"a file of values for the chart":         {"monitoring: {operator: true}\nconfig: {mode: observe}\n", "document: is a values file of the Helm chart and not a configuration"},
		"a configuration with an unknown config": {head + "alertmanager: {urls: [http://a:9093]}\nconfig: {mode: observe}\n", "config: unknown key"},
	} {
		t.Run(name, func(t *testing.T) {
			_, warnings, err := load("drydock.yaml", []byte(tc.text), Options{SkipFiles: true})
			said := lines(warnings)
			if err != nil {
				said = err.Error()
			}
			if tc.says == "" {
				require.NoError(t, err)
				require.NotContains(t, said, ".wait: ")
				return
			}
			require.Contains(t, said, tc.says)
		})
	}
}
