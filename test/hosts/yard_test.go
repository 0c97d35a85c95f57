// Package hosts runs the real programs on real hosts: machines with systemd, sshd and kubelets that
// renew leases. Three of them have an etcd cluster and the lab's API servers. Prometheus,
// Alertmanager and Drydock run outside of the hosts, because they must see the API servers' own
// failure. Tests assert the state of the world: the node, the restarts in the hosts' own journals,
// the record.
package hosts

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/lab/hosts"
	"drydock.dev/drydock/remediations"
)

// tick is the time between two checks of a condition.
const tick = 200 * time.Millisecond

// grace is how long a kubelet may be silent before its node is lost. It is longer than the delays
// of a busy machine.
const grace = 10 * time.Second

// yard is what one test has: hosts without a fault, and Drydock with the test's configuration.
type yard struct {
	t     *testing.T
	hosts *hosts.Hosts
	lab   *lab.Lab
	state string // Drydock's state directory
	began time.Time
	// before is how many attempts each host's journal had when the test began.
	before map[string]int
	// running are the running Drydocks.
	running []*lab.Drydock
}

func newYard(t *testing.T) *yard {
	t.Helper()
	boot(t)
	y := &yard{t: t, hosts: shared.hosts, lab: shared.lab, state: t.TempDir(), before: map[string]int{}}
	ctx, cancel := context.WithTimeout(t.Context(), lab.Patience)
	defer cancel()
	require.NoError(t, y.hosts.Heal(ctx))
	y.settle()
	for _, h := range y.hosts.All() {
		taken, err := h.Attempts(ctx, hosts.KubeletUnit)
		require.NoError(t, err)
		y.before[h.Name] = len(taken)
	}
	y.began = time.Now()
	return y
}

// settle ends the holds of earlier tests on the hosts, waits until all hosts are healthy, and
// removes what Drydock has left on the nodes and in the ledger.
func (y *yard) settle() {
	y.t.Helper()
	for _, h := range y.hosts.All() {
		_, err := h.Run(y.t.Context(), "systemctl", "stop", "drydock-restart-*")
		require.NoError(y.t, err)
		y.await("systemd has nothing more to do on "+h.Name, func() bool { // for example a restart that began with a hold
			jobs, err := h.Run(y.t.Context(), "systemctl", "list-jobs", "--no-legend")
			return err == nil && strings.TrimSpace(jobs) == ""
		})
		y.ready(h.Name, corev1.ConditionTrue)
	}
	y.await("the alerts of earlier tests end", func() bool { return len(y.firing()) == 0 })
	for _, h := range y.hosts.All() {
		gone := map[string]any{}
		for k := range y.node(h.Name).Annotations {
			if remediations.Relevant(k) {
				gone[k] = nil
			}
		}
		patch, err := json.Marshal(map[string]any{
			"metadata": map[string]any{"annotations": gone, "labels": map[string]any{remediations.PhaseLabel: nil}},
			"spec":     map[string]any{"unschedulable": nil},
		})
		require.NoError(y.t, err)
		y.await("Node "+h.Name+" is as at first", func() bool { // a connection to an API server that an earlier test ended may fail once
			_, err := y.lab.Client().CoreV1().Nodes().Patch(y.t.Context(), h.Name, types.MergePatchType, patch, metav1.PatchOptions{})
			return err == nil
		})
	}
	y.await("the ledger is gone", func() bool { // and so may a connection here
		err := y.lab.Client().CoreV1().ConfigMaps(lab.Namespace).Delete(y.t.Context(), "drydock-ledger", metav1.DeleteOptions{})
		return client.IgnoreNotFound(err) == nil
	})
}

// hold is how long a host refuses a second restart of a unit. Drydock's configuration has no key
// for that.
const hold = time.Minute

// wait is how long a plan waits for the proof of a step that must succeed. It is so long that only
// a fault uses it up. soon is how long a plan waits for the proof of a step that must fail.
const (
	wait = lab.Patience
	soon = 20 * time.Second
)

// config returns Drydock's configuration. Its policies are like the shipped ones, with short times.
func (y *yard) config(policies ...any) map[string]any {
	var control []any
	for _, h := range y.hosts.All() {
		if h.ControlPlane {
			control = append(control, map[string]any{"name": h.Name, "address": h.Address()})
		}
	}
	return map[string]any{
		"stateDir":     y.state,
		"controlPlane": map[string]any{"hosts": control, "port": hosts.APIServerPort, "caFile": y.hosts.CAFile()},
		"providers": map[string]any{"hosts": map[string]any{
			"user": hosts.User, "keyFile": y.hosts.KeyFile(), "knownHostsFile": y.hosts.KnownHostsFile(),
			"units": []string{hosts.OtherUnit},
		}},
		// While no API server answers, no node can report that it is healthy, so the breaker may
		// open. It must close again after a moment, and not after ten minutes.
		"limits":   map[string]any{"startupGrace": "0s", "unhealthy": "60%", "stormCooldown": "10s", "repairsPerNode": 10},
		"policies": policies,
	}
}

// nodePolicy returns the shipped node-not-ready with short times. Its plan has two attempts at the
// kubelet, and then these steps.
func nodePolicy(wait time.Duration, further ...any) map[string]any {
	return map[string]any{
		"name": "node-not-ready", "match": []string{`remediation="node-not-ready"`}, "for": "0s", "proofFor": "3s", "cooldown": "0s",
		"witness": []any{map[string]any{"ready": false}},
		"plan":    append([]any{map[string]any{"step": "restart-kubelet", "wait": wait.String(), "attempts": 2}}, further...),
	}
}

// apiPolicy returns the shipped apiserver-down with short times. Its proofFor is longer than an API
// server needs to start. So if an API server that ran all along answers first, the restarted one
// must answer, too, before the rescue is judged. One API server of three gives no majority, so each
// rescue uses the whole wait once. For the second restart, that wait is what a busy machine needs
// to start one.
func apiPolicy() map[string]any { return apiPolicyProven(15 * time.Second) }

func apiPolicyProven(proof time.Duration) map[string]any {
	return map[string]any{
		"name": "apiserver-down", "match": []string{`remediation="apiserver-down"`}, "target": map[string]any{"apiserver": true},
		"for": "0s", "proofFor": proof.String(), "cooldown": "0s", "onExhausted": "none",
		"plan": []any{map[string]any{"step": "restart-kubelet", "wait": "120s", "timeout": "10m"}},
	}
}

// reboot is the step after the restarts: the provider's reboot, which switches the machine's power
// off for a moment.
var reboot = map[string]any{"step": "reboot", "wait": wait.String()}

// run starts Drydock and sends Alertmanager's posts to it. Drydock ends with the test.
func (y *yard) run(config map[string]any) *lab.Drydock {
	y.t.Helper()
	return y.runAt(nil, config)
}

// runAt does the same as run, with a proxy between Drydock and the API server.
func (y *yard) runAt(proxy *lab.Proxy, config map[string]any) *lab.Drydock {
	y.t.Helper()
	if shared.token == "" {
		var err error
		shared.token, err = y.lab.PrepareDrydock(context.WithoutCancel(y.t.Context()))
		require.NoError(y.t, err)
	}
	civo, err := y.lab.StartCivo(y.t.Context(), lab.CivoOptions{RebootTime: time.Second, Machines: y.hosts.Machines(), Logf: y.t.Logf})
	require.NoError(y.t, err)
	y.t.Cleanup(civo.Close)
	o := lab.DrydockOptions{Config: config, Civo: civo}
	if proxy != nil {
		o.Server = proxy.URL()
	}
	d, err := y.lab.StartDrydock(y.t.Context(), shared.token, o)
	require.NoError(y.t, err)
	y.t.Cleanup(d.Kill)
	y.running = append(y.running, d)
	require.NoError(y.t, y.lab.SetWebhook(y.t.Context(), lab.WebhookTarget{URL: d.ReceiverURL, TokenFile: shared.token}))
	return d
}
