// Package readme tests that the documentation is true. It runs the commands of the pages exactly as
// they are printed, on a whole cluster, and checks that the things exist which the pages name.
package readme

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/remediations/selftest"
)

func TestMain(m *testing.M) {
	lab.Main(m, lab.Options{NodeSpecs: lab.CivoNodes(6), NodeGrace: lab.LongNodeGrace})
}

// civo is the page with the whole way from an install to the first observation.
const civo = "docs/providers/civo.md"

// TestThePageLeadsToTheFirstObservation: after its commands, Drydock reports what it would do for a
// broken node. The test plays the operator and the kubelet: it does what they would do with the
// chart's objects, at other addresses.
func TestThePageLeadsToTheFirstObservation(t *testing.T) {
	typed := commands(t, civo, "Install it with three values")
	require.Len(t, typed, 3)
	require.Equal(t, 3, strings.Count(strings.Join(typed, " "), " --set "), "three values")

	s := newTerminal(t)
	require.NoError(t, s.lab.AddOperatorKinds(t.Context())) // kube-prometheus-stack installs these kinds
	civo, err := s.lab.StartCivo(t.Context(), lab.CivoOptions{})
	require.NoError(t, err)
	t.Cleanup(civo.Close)
	key, err := os.ReadFile(civo.KeyFile)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "civo-api-key"), key, 0o600))

	notes := s.types(typed[0])
	require.Contains(t, notes, "Mode: observe")
	require.NotContains(t, notes, "NOT by this chart", "all of it is connected")
	s.types(typed[1])
	seen := s.watches(typed[2])

	s.prometheusLoads()
	receiver := freeAddress(t)
	s.kubeletStarts(receiver, civo)
	s.alertmanagerRoutes(receiver)
	await(t, "the self-test", func() bool { return s.ledger().Status.SelfTest.State == selftest.OK })

	refused := s.asks()
	before := s.node("node-3")
	require.NoError(t, s.lab.SetCondition(t.Context(), "node-3", "KernelDeadlock", corev1.ConditionTrue, "DockerHung"))
	await(t, "the first observation", func() bool { return strings.Contains(seen(), "Observing") })
	require.Regexp(t, `Warning +RepairHeld +node/node-3 +Observing: would reboot node-3 now \(attempt 1\) by policy node-kernel-deadlock; the mode is observe`, seen())
	require.Empty(t, civo.Calls(), "it only observes")
	require.Equal(t, before.Spec, s.node("node-3").Spec)

	t.Run("the pages print what is printed", func(t *testing.T) { s.prints(t, receiver, seen(), refused) })
	t.Run("the trial of a week", func(t *testing.T) { s.tries(t, receiver, civo) })
	t.Run("a policy enforces", s.enforces)
	t.Run("uninstalled", s.uninstalls)
	t.Run("with a Prometheus of one's own", s.plain)
}

func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	require.Eventually(t, is, lab.Patience, 200*time.Millisecond, "waiting for %s", what)
}

// prometheusLoads makes Prometheus load the rules of the chart's object, as the operator would. The
// rules about nodes fire without a wait.
func (s *terminal) prometheusLoads() {
	s.t.Helper()
	var object struct {
		Metadata metav1.ObjectMeta
		Spec     struct {
			Groups []struct {
				Name  string `json:"name"`
				Rules []m    `json:"rules"`
			} `json:"groups"`
		}
	}
	s.reads("prometheusrule drydock", &object)
	require.Equal(s.t, "kube-prometheus-stack", object.Metadata.Labels["release"], "by this label the stack selects its rules")
	for _, g := range object.Spec.Groups {
		for _, r := range g.Rules {
			if r["for"] != nil && r["labels"].(m)["remediation"] != "none" {
				r["for"], r["keep_firing_for"] = "1s", "1s"
				r["expr"] = lab.ShortLooks(r["expr"].(string))
			}
		}
	}
	rules, err := yaml.Marshal(m{"groups": object.Spec.Groups})
	require.NoError(s.t, err)
	require.NoError(s.t, s.lab.LoadRules(s.t.Context(), "drydock", rules))
}

type route struct {
	Receiver       string   `json:"receiver"`
	Matchers       []m      `json:"matchers"`
	GroupBy        []string `json:"groupBy"`
	GroupWait      string   `json:"groupWait"`
	GroupInterval  string   `json:"groupInterval"`
	RepeatInterval string   `json:"repeatInterval"`
	Routes         []route  `json:"routes"`
}

// config is the part of Alertmanager's configuration that the operator writes for the route: the
// receiver with its long name, and additional matchers.
func (r route) config(more ...string) m {
	for _, x := range r.Matchers {
		more = append(more, fmt.Sprintf("%s%s%q", x["name"], x["matchType"], x["value"]))
	}
	var routes []any
	for _, sub := range r.Routes {
		routes = append(routes, sub.config())
	}
	return m{
		"receiver": "drydock/drydock/" + r.Receiver, "matchers": more, "group_by": r.GroupBy, "group_wait": r.GroupWait,
		"group_interval": r.GroupInterval, "repeat_interval": r.RepeatInterval, "continue": true, "routes": routes,
	}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	port, err := lab.FreePort()
	require.NoError(t, err)
	return fmt.Sprintf("127.0.0.1:%d", port)
}

// alertmanagerRoutes makes Alertmanager use the route in the chart's object, as the operator would.
// The receiver's address replaces the Service's.
func (s *terminal) alertmanagerRoutes(receiver string) {
	s.t.Helper()
	var object struct {
		Spec struct {
			Route     route
			Receivers []struct {
				Name           string
				WebhookConfigs []struct {
					URL        string
					HTTPConfig struct {
						Authorization struct {
							Type        string
							Credentials struct{ Name, Key string }
						}
					}
				}
			}
		}
	}
	s.reads("alertmanagerconfig drydock", &object)
	require.Len(s.t, object.Spec.Receivers, 1)
	hook := object.Spec.Receivers[0].WebhookConfigs[0]
	var service corev1.Service
	s.reads("service drydock", &service)
	require.Equal(s.t, fmt.Sprintf("http://%s.%s:%d/v1/alerts", service.Name, service.Namespace, service.Spec.Ports[0].Port), hook.URL)
	credentials := hook.HTTPConfig.Authorization.Credentials
	require.NoError(s.t, s.lab.SetWebhook(s.t.Context(), lab.WebhookTarget{Config: m{
		"route": m{"receiver": "nobody", "routes": []any{object.Spec.Route.config(`namespace="drydock"`)}},
		"receivers": []any{m{"name": "nobody"}, m{"name": "drydock/drydock/" + object.Spec.Receivers[0].Name, "webhook_configs": []any{m{
			"url": "http://" + receiver + "/v1/alerts",
			"http_config": m{"authorization": m{
				"type": hook.HTTPConfig.Authorization.Type, "credentials_file": s.secret(credentials.Name, credentials.Key),
			}},
		}}}},
	}}))
}

// kubeletStarts starts Drydock as the chart's Deployment would, but outside of the cluster: with
// its ServiceAccount, and with the configuration in its ConfigMap. Only the addresses, the cluster
// at Civo and the folder of the files differ. The minimum age of nodes is also removed, because the
// nodes of a lab are seconds old.
func (s *terminal) kubeletStarts(receiver string, civo *lab.Civo) {
	s.t.Helper()
	var configuration corev1.ConfigMap
	s.reads("configmap drydock", &configuration)
	var c m
	require.NoError(s.t, yaml.Unmarshal([]byte(configuration.Data["drydock.yaml"]), &c))
	var d struct {
		Spec struct {
			Template corev1.PodTemplateSpec
		}
	}
	s.reads("deployment drydock", &d)
	pod := d.Spec.Template.Spec
	mounted := map[string]string{}
	var later []func() // the file of an optional key appears when Drydock has generated the key
	for _, source := range pod.Volumes[0].Projected.Sources {
		if source.Secret != nil {
			name, item := source.Secret.Name, source.Secret.Items[0]
			in := filepath.Join(pod.Containers[0].VolumeMounts[0].MountPath, item.Path)
			if s.generated(name, item.Key) != "" || !ptr.Deref(source.Secret.Optional, false) {
				mounted[in] = s.secret(name, item.Key)
				continue
			}
			file := filepath.Join(s.dir, "mounted-"+name)
			mounted[in] = file
			later = append(later, func() {
				await(s.t, "the key "+item.Key+" of Secret "+name, func() bool { return s.generated(name, item.Key) != "" })
				require.NoError(s.t, os.WriteFile(file, []byte(s.generated(name, item.Key)), 0o600))
			})
		}
	}
	set := func(section m, key string) {
		file, found := mounted[section[key].(string)]
		require.True(s.t, found, "%s is mounted nowhere", section[key])
		section[key] = file
	}
	health := freeAddress(s.t)
	provider := c["providers"].(m)["civo"].(m)
	set(c["receiver"].(m), "tokenFile")
	set(provider, "apiKeyFile")
	c["receiver"].(m)["listen"], c["metrics"], c["health"] = receiver, m{"listen": freeAddress(s.t)}, m{"listen": health}
	c["alertmanager"].(m)["urls"] = s.lab.AlertmanagerURLs()
	provider["apiURL"], provider["clusterID"], provider["region"] = civo.URL(), civo.ClusterID, civo.Region
	c["limits"] = m{"startupGrace": "0s"}
	text, err := yaml.Marshal(c)
	require.NoError(s.t, err)
	file := filepath.Join(s.dir, "drydock.yaml")
	require.NoError(s.t, os.WriteFile(file, text, 0o600))
	kubeconfig, err := s.lab.ServiceAccountKubeconfig(s.t.Context(), "drydock", pod.ServiceAccountName, "")
	require.NoError(s.t, err)
	p, err := lab.StartProcess(s.t.Context(), lab.Spec{
		Name: "drydock", Path: filepath.Join(s.dir, "drydock"), Args: []string{"run", "--config", file, "--kubeconfig", kubeconfig},
		Log: filepath.Join(s.lab.LogDir(), "drydock.log"), ReadyURL: "http://" + health + "/readyz",
	})
	require.NoError(s.t, err)
	s.t.Cleanup(p.Kill)
	s.drydock = p
	for _, write := range later {
		write()
	}
}
