package ui

import (
	"context"
	"os"
	"os/exec"
	"strings"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/lab/civosim"
	"drydock.dev/drydock/internal/lab/programs"
)

// These are the rights of the people in the tests.
const (
	readsAll = `[{apiGroups: [""], resources: [nodes, configmaps, events], verbs: [get, list, watch]},
  {apiGroups: [events.k8s.io], resources: [events], verbs: [get, list, watch]},
  {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [get, list]}]`
)

// account returns the kubeconfig of a person with these rights. It connects through server or, if
// server is empty, to the API server itself.
func (c *cluster) account(name, rules, server string) string {
	c.t.Helper()
	kubeconfig, err := c.lab.PersonKubeconfig(c.t.Context(), name, rules, server)
	require.NoError(c.t, err)
	return kubeconfig
}

// running is a running Drydock, with its provider.
type running struct {
	*lab.Drydock
	civo *lab.Civo
}

var receiverToken string

// drydock runs the real Drydock with short times until the test ends. over is merged over its
// policy.
func (c *cluster) drydock(over map[string]any) *running {
	c.t.Helper()
	ctx := context.WithoutCancel(c.t.Context())
	if receiverToken == "" {
		var err error
		// Admission is off, because tests write records and remove what earlier tests left.
		receiverToken, err = c.lab.PrepareDrydockWith(ctx, map[string]any{
			"admission": map[string]any{"policy": map[string]any{"enabled": false}}, "config": map[string]any{"mode": "enforce"},
		})
		require.NoError(c.t, err)
	}
	civo, err := c.lab.StartCivo(ctx, lab.CivoOptions{})
	require.NoError(c.t, err)
	c.t.Cleanup(civo.Close)
	policy := map[string]any{
		"name": "node-not-ready", "match": []any{`remediation="node-not-ready"`}, "for": "0s", "proofFor": "2s", "cooldown": "0s",
		"relapseWindow": "0s", "witness": []any{map[string]any{"ready": false}},
		"plan": []any{map[string]any{"step": "reboot", "wait": "10m", "attempts": 2}},
	}
	for k, v := range over {
		policy[k] = v
	}
	err = c.lab.Client().CoreV1().ConfigMaps(lab.Namespace).Delete(ctx, "drydock-ledger", metav1.DeleteOptions{})
	require.NoError(c.t, err)
	d, err := c.lab.StartDrydock(ctx, receiverToken, lab.DrydockOptions{Civo: civo, Config: map[string]any{"policies": []any{policy}}})
	require.NoError(c.t, err)
	c.t.Cleanup(func() {
		d.Kill()
		// Otherwise the next replica could not become the leader before this one's Lease has
		// expired.
		_ = c.lab.Client().CoordinationV1().Leases(lab.Namespace).Delete(ctx, "drydock", metav1.DeleteOptions{})
	})
	require.NoError(c.t, c.lab.SetWebhook(ctx, lab.WebhookTarget{URL: d.ReceiverURL, TokenFile: receiverToken}))
	c.civo = civo
	return &running{d, civo}
}

// reboots returns the calls that really had an effect on that node.
func (c *cluster) reboots(node string) (count int) {
	id := strings.TrimPrefix(c.node(node).Spec.ProviderID, "civo://")
	for _, call := range c.civo.Done(civosim.HardReboots) {
		if strings.Contains(call.Path, id) {
			count++
		}
	}
	return count
}

// silence is a silence in Alertmanager.
type silence struct {
	c  *cluster
	id string
}

// silence creates a silence for 20 minutes. It is removed at the end of the test.
func (c *cluster) silence(by, comment string, matchers ...string) silence {
	c.t.Helper()
	args := append([]string{"silence", "add", "--author=" + by, "--comment=" + comment, "--duration=20m"}, matchers...)
	out, err := c.amtool(args...)
	require.NoError(c.t, err, out)
	s := silence{c, out}
	c.t.Cleanup(func() { _, _ = c.amtool("silence", "expire", s.id) }) // the error is that it has ended
	return s
}

func (s silence) expire() {
	s.c.t.Helper()
	out, err := s.c.amtool("silence", "expire", s.id)
	require.NoError(s.c.t, err, out)
}

func (c *cluster) amtool(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.t.Context()), lab.Patience)
	defer cancel()
	paths, err := programs.Build(ctx, os.Stderr, "amtool")
	if err != nil {
		return "", err
	}
	out, err := exec.CommandContext(ctx, paths["amtool"], append([]string{"--alertmanager.url=" + c.lab.AlertmanagerURLs()[0]}, args...)...).CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// whyFlags are the flags that give the command Drydock's knowledge.
func (c *cluster) whyFlags(d *running) []string {
	return []string{"--config", d.ConfigFile, "--alertmanager", c.lab.AlertmanagerURLs()[0]}
}
