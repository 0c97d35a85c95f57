package main

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/actions"
	"drydock.dev/drydock/internal/cli"
)

func TestUsageErrorsEndWithTwo(t *testing.T) {
	for args, want := range map[string]string{
		"stauts":                   `unknown command "stauts" for "kubectl drydock"`,
		"status n -l a=b":          "nodes and -l were both given; give one of them",
		"status -o table":          `--output is "table"; write wide, json, yaml, jsonpath=…, go-template=… or custom-columns=…`,
		"status --fast":            "unknown flag: --fast",
		"history":                  "accepts 1 arg(s), received 0",
		"why":                      "accepts 1 arg(s), received 0",
		"why n -o table":           `--output is "table"; `,
		"history n -o name":        `--output is "name"; write wide, json, yaml, jsonpath=…, go-template=… or custom-columns=…`,
		"history n -o jsonpath={":  "--output: ",
		"pause n -l a=b":           "nodes and -l were both given; give one of them",
		"pause -l a=b=c":           `--selector "a=b=c" is not a label selector: `,
		"pause n --dry-run=client": `invalid argument "client" for "--dry-run" flag: write none or server`,
		"cleanup n":                `unknown command "n" for "kubectl drydock cleanup"`,
		"pause":                    "name at least one node, or select nodes with -l",
		"pause n --for soon":       `invalid argument "soon" for "--for" flag`,
		"pause n --for 0s":         "--for must be longer than 0, for example 30m, 2h or 1d",
		"resume":                   "name at least one node, or select nodes with -l",
		"repair n":                 "give --with REMEDIATION or --policy NAME",
		"repair n m --with reboot": "accepts 1 arg(s), received 2",
		"approve":                  "accepts between 1 and 2 arg(s), received 0",
		"cancel a b c":             "accepts between 1 and 2 arg(s), received 3",
		"reset":                    "name a node, or a policy with --policy NAME",
		"reset a b c":              "accepts at most 2 arg(s), received 3",
		"break-glass n":            "--why is required",
		"pause n --why " + strings.Repeat("x", actions.MaxWhy+1): "--why has 257 bytes; the limit is 256",
	} {
		d := newDesk(t, node("n", nil))
		code, stdout, stderr := d.run(strings.Fields(args)...)
		require.Equal(t, cli.ExitUsage, code, args)
		require.Empty(t, stdout)
		require.Contains(t, stderr, "error: "+want)
		require.Contains(t, stderr, "Run 'kubectl drydock --help'")
		require.Empty(t, d.cluster.Actions(), args)
	}
}

func TestHelpSaysWhatPeopleType(t *testing.T) {
	for _, args := range []string{"", "--help", "help", "pause --help", "status -h"} {
		code, stdout, stderr := newDesk(t).run(strings.Fields(args)...)
		require.Equal(t, cli.ExitOK, code)
		require.Contains(t, stdout, "kubectl drydock")
		require.NotContains(t, stdout, "kubectl-drydock")
		require.NotContains(t, stdout, "--certificate-authority", "the usual flags are out of the way")
		require.Contains(t, stdout, `Use "kubectl drydock options" for kubectl's flags`)
		require.Empty(t, stderr)
	}
}

// A plugin that people copy about must not carry the controller.
func TestNothingOfTheControllerIsLinkedIn(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	require.NoError(t, err)
	for _, pkg := range strings.Fields(string(out)) {
		if rest, ok := strings.CutPrefix(pkg, "drydock.dev/drydock/"); ok {
			if strings.HasSuffix(rest, "/settings") {
				continue // a provider's section of the configuration, and nothing that calls it
			}
			require.Contains(t, []string{
				"remediations", "internal/actions", "internal/cli", "internal/inspect", "internal/report", "internal/text", "internal/version", "cmd/kubectl-drydock",
				// the page on the user's own machine
				"internal/ui", "internal/httpserver",
				// what a decision about a node rests on, for why
				"internal/bounded", "internal/config", "internal/config/section", "internal/promhttp", "internal/redact", "internal/replicas", "internal/secretfile", "remediations/admission", "remediations/alertmanager",
				"remediations/alerts", "remediations/announce", "remediations/coverage", "remediations/fleet", "remediations/ledger", "remediations/lifecycle",
				"remediations/marks", "remediations/owners", "remediations/routing", "remediations/selftest", "remediations/signs", "rules",
				"remediations/rescue/apiserver", "remediations/targets/location", "remediations/targets/node", "remediations/targets/sidecar",
			}, rest)
		}
		require.NotContains(t, pkg, "controller-runtime")
		require.NotContains(t, pkg, "civogo")
	}
}
