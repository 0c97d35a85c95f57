package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"drydock.dev/drydock/remediations"
	civo "drydock.dev/drydock/remediations/providers/civo/settings"
)

// base is a configuration that lacks nothing; tests write what they are about after it.
const base = `apiVersion: drydock.dev/v1alpha1
kind: Config
receiver: {insecure: true}
alertmanager: {urls: ["http://alertmanager:9093"]}
`

func mustLoad(t *testing.T, text string) (*Config, []Fault) {
	t.Helper()
	c, warnings, err := load("drydock.yaml", []byte(text), Options{SkipFiles: true})
	require.NoError(t, err)
	return c, warnings
}

func lines(faults []Fault) string { return Faults(faults).Error() + "\n" }

// withFiles writes a configuration into a folder of its own, and the files that it names under it.
func withFiles(t *testing.T, text string, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, f := range files {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, f)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, f), []byte("secret\n"), 0o600))
	}
	file := filepath.Join(dir, "drydock.yaml")
	require.NoError(t, os.WriteFile(file, []byte(strings.ReplaceAll(text, "/etc/drydock/", "etc/")), 0o600))
	return file
}

func TestSmallestExampleLoads(t *testing.T) {
	file := withFiles(t, SmallestExample, "etc/token", "etc/civo-api-key")
	c, warnings, err := Load(file, Options{})
	require.NoError(t, err)
	golden(t, "testdata/smallest.warnings", strings.ReplaceAll(lines(warnings), file, "smallest.yaml"))
	require.Equal(t, filepath.Join(filepath.Dir(file), "etc/token"), c.Receiver.TokenFile)
	require.Equal(t, filepath.Join(filepath.Dir(file), "etc/civo-api-key"), c.Providers["civo"].(*civo.Civo).APIKeyFile)
	require.Equal(t, remediations.ModeObserve, c.Mode)
	require.Equal(t, map[string]bool{"drain": true, "reboot": true, "replace": true}, c.Core.Provided)
}

func TestFullExampleLoads(t *testing.T) {
	file := withFiles(t, FullExample, "etc/token", "etc/civo-api-key")
	c, warnings, err := Load(file, Options{})
	require.NoError(t, err)
	golden(t, "testdata/full.warnings", strings.ReplaceAll(lines(warnings), file, "full.yaml"))
	require.Equal(t, remediations.ModeEnforce, c.Mode)
	require.Equal(t, []string{"gpu-node-not-ready", "node-not-ready"}, names(c)[:2])
	require.Len(t, c.Policies, len(Shipped().Policies), "the file's policies replace the shipped ones of the same names")
	require.Equal(t, "cluster", c.Core.ClusterLabel)
	require.Equal(t, "prod-1", c.Core.ClusterValue)
	require.Equal(t, ":9443", c.Webhook.Listen)
	require.Len(t, c.Alertmanager.URLs, 2)

	gpu, node := c.Core.Policies[0], c.Core.Policies[1]
	require.Equal(t, "nvidia.com/gpu.count", gpu.NodeSelector.String())
	require.Equal(t, []remediations.Step{{Name: "reboot", Wait: 40 * time.Minute, Attempts: 3}}, gpu.Plan)
	require.Equal(t, remediations.ModeEnforce, gpu.Mode, "taken from the global mode")
	require.Equal(t, 30*time.Minute, node.EndWhenWell)
	require.Zero(t, gpu.EndWhenWell, "off")
	require.Equal(t, []remediations.Step{
		{Name: "restart-kubelet", Wait: 3 * time.Minute, Attempts: 1},
		{Name: "reboot", Wait: 10 * time.Minute, Attempts: 2},
		{Name: "drain", Timeout: 30 * time.Minute, Attempts: 1},
		{Name: "replace", Wait: 20 * time.Minute, Attempts: 1},
	}, node.Plan)
	require.Equal(t, 2*time.Minute, node.For)
	require.True(t, node.CordonExhausted)
	require.Equal(t, `{remediation="node-not-ready"}`, node.Match.String())
}

// The whole of what a configuration means that says only what it must.
func TestDefaults(t *testing.T) {
	d := parse("drydock.yaml", []byte(base), "")
	root := d.tree.(map[string]any)
	s := loadSchema()
	s.root.fill(root, root)
	var out strings.Builder
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	require.NoError(t, encoder.Encode(s.root.ordered(root)))
	golden(t, "testdata/defaults.yaml", out.String())
}

func TestDefaultStepsArePerRemediation(t *testing.T) {
	c, _ := mustLoad(t, base+`policies:
- name: one
  match: ['a="b"']
  plan: [{step: reboot}, {step: replace}, {step: restart-kubelet}, {step: drain}, {step: drain, onTimeout: continue, timeout: 1h}]
`)
	require.Equal(t, []remediations.Step{
		{Name: "reboot", Wait: 10 * time.Minute, Attempts: 1},
		{Name: "replace", Wait: 20 * time.Minute, Attempts: 1},
		{Name: "restart-kubelet", Wait: 3 * time.Minute, Attempts: 1},
		{Name: "drain", Timeout: 30 * time.Minute, Attempts: 1},
		{Name: "drain", Timeout: time.Hour, Attempts: 1, ContinueOnTimeout: true},
	}, c.Core.Policies[0].Plan)
}

// A step whose name is in the registry must be one that a plan can hold.
func TestEveryRemediationCanBeAStep(t *testing.T) {
	for name, r := range remediations.Shipped() {
		step := "wait: 5m"
		if !r.Once {
			step = "timeout: 5m"
		}
		switch name {
		case "restart-unit":
			step += ", unit: a.service"
		case "rollout-restart":
			step += ", daemonSet: a/b"
		case "external-replace":
			step += ", template: {apiVersion: a.example/v1, kind: MachineDeletionRemediationTemplate, namespace: a, name: b}"
		case "external":
			step += ", template: {apiVersion: a.example/v1, kind: FenceTemplate, namespace: a, name: b}"
		}
		target := ""
		switch r.Target {
		case "sidecar":
			target = "target: {pod: pod}, "
		case "leader":
			target = "target: {location: location}, "
		default: // a policy about nodes, or about the API servers, names no other target
		}
		c, _ := mustLoad(t, base+"policies: [{name: one, "+target+"match: ['a=\"b\"'], plan: [{step: "+name+", "+step+"}]}]\n")
		require.Equal(t, name, c.Core.Policies[0].Plan[0].Name)
	}
}

func TestWindowsAndLimitsAreCompiled(t *testing.T) {
	c, _ := mustLoad(t, base+`windows:
- {days: [Mon, Sun], from: "22:00", to: "05:30", timezone: Europe/Berlin}
- {from: "08:09", to: "24:00"}
limits: {concurrent: 3, concurrentPerZone: 10%, unhealthy: 0, repairsWindow: 1d}
`)
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	require.Equal(t, []remediations.Window{
		{Days: []time.Weekday{time.Monday, time.Sunday}, From: remediations.WallTime{Hour: 22}, To: remediations.WallTime{Hour: 5, Minute: 30}, Location: berlin},
		{From: remediations.WallTime{Hour: 8, Minute: 9}, To: remediations.WallTime{Hour: 24}, Location: time.UTC},
	}, c.Core.Windows)
	require.Equal(t, "3", c.Core.Limits.Concurrent.String())
	require.Equal(t, "10%", c.Core.Limits.ConcurrentPerZone.String())
	require.Equal(t, "1", c.Core.Limits.ConcurrentPerPool.String())
	require.Equal(t, "0", c.Core.Limits.Unhealthy.String())
	require.Equal(t, 24*time.Hour, c.Core.Limits.RepairsWindow)
}

// TestAnotherClustersWatchdogProvesNothing: a lost source of the other cluster does not make
// Drydock blind here either.
func TestAnotherClustersWatchdogProvesNothing(t *testing.T) {
	const own = `alertmanager: {urls: ["http://am:9093"], blindWhen: ['alertname="SourceDown"', 'alertname="AllDown",cluster=~".+"']}
cluster: {label: cluster, value: prod-1}
`
	c, _ := mustLoad(t, strings.Replace(base, `alertmanager: {urls: ["http://alertmanager:9093"]}`+"\n", own, 1))
	require.Equal(t, `{alertname="Watchdog",cluster="prod-1"}`, c.Alertmanager.Watchdog.String())
	require.Equal(t, `{alertname="SourceDown",cluster="prod-1"}`, c.Alertmanager.BlindWhen[0].String())
	require.Equal(t, `{alertname="AllDown",cluster=~".+"}`, c.Alertmanager.BlindWhen[1].String(), "it says so itself")

	c, _ = mustLoad(t, base)
	require.Equal(t, `{alertname="Watchdog"}`, c.Alertmanager.Watchdog.String(), "there is no other cluster")
}

func TestHTTPConfigIsPrometheusOwn(t *testing.T) {
	text := `apiVersion: drydock.dev/v1alpha1
kind: Config
receiver: {listen: "127.0.0.1:9095"}
alertmanager:
  urls: ["https://alertmanager/prefix/"]
  httpConfig: {authorization: {credentials_file: am/token}}
`
	file := withFiles(t, text, "am/token")
	c, _, err := Load(file, Options{})
	require.NoError(t, err)
	require.Equal(t, "https://alertmanager/prefix", c.Alertmanager.URLs[0].String())
	require.True(t, c.Alertmanager.HTTPConfig.FollowRedirects, "the default of prometheus/common")
	require.Equal(t, "Bearer", c.Alertmanager.HTTPConfig.Authorization.Type)
	require.Equal(t, filepath.Join(filepath.Dir(file), "am/token"), c.Alertmanager.HTTPConfig.Authorization.CredentialsFile)
}

func TestUnreadableConfigurationIsAFault(t *testing.T) {
	_, _, err := Load("testdata/no-such-file.yaml", Options{})
	require.EqualError(t, err, "testdata/no-such-file.yaml:1: document: cannot be read: no such file or directory")
}

func TestLargeAndDeepConfigurationsAreRefused(t *testing.T) {
	_, _, err := load("large.yaml", []byte(strings.Repeat("# padding\n", 110_000)), Options{})
	require.ErrorContains(t, err, "large.yaml:1: document: is larger than 1048576 bytes")
	_, _, err = load("deep.yaml", []byte("mode: "+strings.Repeat("[", 9_000)+strings.Repeat("]", 9_000)), Options{})
	require.ErrorContains(t, err, "is nested more than 64 levels deep")
	_, _, err = load("bomb.yaml", []byte("mode: &a [x]\nmetrics: &b [*a, *a, *a]\nhealth: [*b, *b, *b]\n"), Options{})
	require.ErrorContains(t, err, "bomb.yaml:3: health[0]: is an alias of \"b\"")
}
