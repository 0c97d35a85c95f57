package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/internal/actions"
	"drydock.dev/drydock/internal/cli"
	"drydock.dev/drydock/remediations"
)

func inPool(n *corev1.Node, pool string) *corev1.Node {
	n.Labels["pool"] = pool
	return n
}

// TestKubectlsFormatsPrintTheObjects: what -o prints is kubectl's work; here is that it gets the
// right object.
func TestKubectlsFormatsPrintTheObjects(t *testing.T) {
	d := newDesk(t, under("node-1", record("aaaaaa", remediations.PhaseVerifying)), under("node-2", record("bbbbbb", remediations.PhasePending)), ledgerOf(calmLedger()),
		node("node-3", map[string]string{remediations.HistoryKey: historyOf(t, remediations.Entry{ID: "cccccc", Outcome: remediations.OutcomeRecovered})}))
	for args, want := range map[string]string{
		"status -o jsonpath={.repairs[*].node}":                                 "node-1 node-2",
		"status -o go-template={{.kind}}":                                       "Status",
		"status -o custom-columns=NODE:.node,ID:.record.id,PHASE:.record.phase": "NODE     ID       PHASE\nnode-1   aaaaaa   Verifying\nnode-2   bbbbbb   Pending\n",
		"history node-3 -o jsonpath={.repairs[0].outcome}":                      "Recovered",
		"history node-3 -o custom-columns=ID:.id":                               "ID\ncccccc\n",
		"version --client -o jsonpath={.kind}":                                  "Version",
	} {
		code, stdout, stderr := d.run(strings.Fields(args)...)
		require.Equal(t, cli.ExitOK, code, stderr)
		require.Equal(t, want, stdout, args)
	}
}

func TestASelectorChoosesTheNodes(t *testing.T) {
	d := newDesk(t, inPool(node("node-1", nil), "gpu"), inPool(node("node-2", nil), "cpu"), inPool(node("node-3", nil), "gpu"))
	code, stdout, stderr := d.run("pause", "-l", "pool=gpu", "--why", "firmware")
	require.Equal(t, cli.ExitOK, code, stderr)
	require.Equal(t, 2, strings.Count(stdout, " is paused "))
	for name, want := range map[string]string{"node-1": "true firmware", "node-2": "", "node-3": "true firmware"} {
		require.Equal(t, want, d.node(name).Annotations[remediations.PauseKey], name)
	}
	code, _, stderr = d.run("resume", "-l", "pool in (gpu)")
	require.Equal(t, cli.ExitOK, code, stderr)
	require.Empty(t, d.node("node-1").Annotations)

	code, _, stderr = d.run("pause", "-l", "pool=tpu")
	require.Equal(t, cli.ExitFailed, code)
	require.Equal(t, "error: no node has labels that match \"pool=tpu\"\n", stderr)
}

// completions are what the shell is offered.
func (d *desk) completions(line string) []string {
	d.t.Helper()
	code, stdout, _ := d.run(append([]string{"__completeNoDesc"}, strings.Split(line, " ")...)...)
	require.Equal(d.t, cli.ExitOK, code)
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	return lines[:len(lines)-1] // the last is cobra's directive
}

func TestNamesAreCompleted(t *testing.T) {
	own := ledgerIn("ops", map[string]string{"drydock.yaml": "policies: [{name: mine}]"})
	own.Name = "drydock"
	d := newDesk(t, node("node-1", nil), node("other-1", nil), under("node-2", record("aaaaaa", remediations.PhaseVerifying)), ledgerOf(calmLedger()), own)
	for line, want := range map[string][]string{
		"pause ":           {"node-1", "node-2", "other-1"},
		"pause n":          {"node-1", "node-2"},
		"pause node-1 n":   {"node-2"},
		"history ":         {"node-1", "node-2", "other-1"},
		"why n":            {"node-1", "node-2"},
		"why node-1 ":      {},
		"history node-1 ":  {},
		"cancel ":          {"node-2"},
		"repair n --with ": actions.NodeRemediations(),
		"pause --dry-run ": {"none", "server"},
	} {
		require.ElementsMatch(t, want, d.completions(line), line)
	}
	require.Subset(t, d.completions("status -o "), []string{"wide", "json", "yaml", "jsonpath=", "custom-columns="})
	names := d.completions("repair n --policy ")
	require.Subset(t, names, []string{"mine", "node-not-ready"})
	require.Greater(t, len(names), 5)

	require.Equal(t, []string{"__complete", "pause", ""}, calledAs("/usr/bin/kubectl_complete-drydock", []string{"pause", ""}))
	require.Equal(t, []string{"pause", ""}, calledAs("/usr/bin/kubectl-drydock", []string{"pause", ""}), "the control")
}

func TestADryRunAsksTheServerAlone(t *testing.T) {
	for _, line := range []string{
		"pause n", "resume paused", "repair n --with reboot", "approve waiting", "cancel waiting", "reset ran-out", "break-glass n --why now", "cleanup --yes",
	} {
		d := newDesk(t, node("n", nil), node("paused", map[string]string{remediations.PauseKey: "true"}), exhausted("ran-out", "cccccc", "p"),
			under("waiting", record("bbbbbb", remediations.PhasePending, held(remediations.ReasonAwaitingApproval, "", time.Time{}))), ledgerOf(calmLedger()), leaseOf("", now))
		code, stdout, stderr := d.run(append(strings.Fields(line), "--dry-run=server")...)
		require.Equal(t, cli.ExitOK, code, stderr)
		require.Contains(t, stdout, " (server dry run: nothing was written)\n", line)
		require.NotEmpty(t, d.patches(), line)
		for _, p := range d.patches() {
			require.Equal(t, []string{metav1.DryRunAll}, p.PatchOptions.DryRun, line)
		}
	}
	d := newDesk(t, node("n", nil))
	_, stdout, _ := d.run("pause", "n")
	require.NotContains(t, stdout, "dry run", "the control")
	require.Empty(t, d.patches()[0].PatchOptions.DryRun)
}

func TestOptionsPrintsKubectlsFlags(t *testing.T) {
	code, stdout, _ := newDesk(t).run("options")
	require.Equal(t, cli.ExitOK, code)
	require.Contains(t, stdout, "--kubeconfig")
	require.Contains(t, stdout, "--certificate-authority")
}

func TestVersionSaysWhetherThePluginFits(t *testing.T) {
	l := ledgerOf(calmLedger())
	l.Annotations = map[string]string{remediations.VersionKey: "v1.2.3"}
	code, stdout, stderr := newDesk(t, l).run("version")
	require.Equal(t, cli.ExitOK, code, stderr)
	require.Regexp(t, `\AClient: \S+, commit \S+, go go\S+\nServer: v1\.2\.3\nSkew: unknown: at least one of the two versions is not a release`, stdout)

	code, stdout, stderr = newDesk(t, ledgerOf(calmLedger())).run("version")
	require.Equal(t, cli.ExitOK, code, stderr)
	require.Contains(t, stdout, "Server: unknown: ConfigMap drydock/drydock-ledger has no annotation drydock.dev/version")
	_, stdout, _ = newDesk(t).run("version")
	require.Contains(t, stdout, "Server: unknown: there is no ConfigMap drydock-ledger in namespace drydock")
	d := newDesk(t)
	_, stdout, _ = d.run("version", "--client")
	require.NotContains(t, stdout, "Server")
	require.Empty(t, d.cluster.Actions())
	_, stdout, _ = d.run("--version")
	require.Regexp(t, `\Akubectl drydock version \S+, commit \S+, go go\S+\n\z`, stdout)

	for _, c := range []struct{ client, server, want string }{
		{"v1.2.3", "v1.2.3", "none"},
		{"v1.2.3", "v1.2.4", "they differ by a patch release, which is supported"},
		{"v1.2.3", "v1.3.0", "the plugin is older than Drydock"},
		{"v2.0.0", "v1.3.0", "the plugin is newer than Drydock"},
		{"v1.2.0-rc.1", "v1.3.0", "the plugin is older than Drydock"},
		{"(devel)", "v1.3.0", "unknown: "},
		{"v0.0.0-20261129033309-be831bcd0f3a", "v1.3.0", "unknown: at least one of the two versions is not a release"},
		{"v0.0.0-20261129033309-be831bcd0f3a+dirty", "v1.3.0", "unknown: "},
		{"v1.2.1-0.20261129033309-be831bcd0f3a", "v1.3.0", "unknown: "},
		{"v1.3.0", "v1.2.0-rc.1.0.20261129033309-be831bcd0f3a", "unknown: "},
		{"v1.2.0+dirty", "v1.3.0", "unknown: "},
		{"v1.2.0-140-gbe831bc", "v1.3.0", "unknown: "},
		{"v1.2.0-140-gbe831bc-dirty", "v1.3.0", "unknown: "},
	} {
		require.Contains(t, skew(c.client, c.server), c.want, "%s with %s", c.client, c.server)
	}
}
