package install

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"drydock.dev/drydock/internal/config"
	"drydock.dev/drydock/internal/lab"
)

// monitor is the part of a ServiceMonitor or a PodMonitor that the Prometheus operator reads.
type monitor struct {
	Spec struct{ Endpoints, PodMetricsEndpoints []endpoint }
}

type endpoint struct {
	Port, Scheme, BearerTokenFile string
	TLSConfig                     struct {
		CA                 struct{ Secret struct{ Name, Key string } }
		ServerName         string
		InsecureSkipVerify bool
	}
}

func authentication(more m) m {
	values := m{"enabled": true}
	for k, v := range more {
		values[k] = v
	}
	return m{"monitoring": m{"operator": true}, "agent": m{"enabled": true}, "metrics": m{"annotations": true, "authentication": values}}
}

// TestScrapesAreAuthenticatedIfAValueAsksForIt: then metrics are served over TLS, Drydock may ask
// the API server about tokens, scrapes send a token, and the scraper has a role. By default there
// is none of this.
func TestScrapesAreAuthenticatedIfAValueAsksForIt(t *testing.T) {
	for name, tc := range map[string]struct {
		values                                   m
		authenticates                            bool
		secret, serverName, scheme, certificates string
	}{
		"by default":             {m{"monitoring": m{"operator": true}, "agent": m{"enabled": true}, "metrics": m{"annotations": true}}, false, "", "", "", ""},
		"with a Secret":          {authentication(m{"secret": "own"}), true, "own", "drydock.drydock.svc", "https", ""},
		"with another name":      {authentication(m{"secret": "own", "serverName": "m.example.com"}), true, "own", "m.example.com", "https", ""},
		"with cert-manager":      {authentication(m{"certManager": m{"enabled": true}}), true, "drydock-metrics", "drydock.drydock.svc", "https", "drydock.drydock.svc"},
		"a Secret and not asked": {m{"monitoring": m{"operator": true}, "agent": m{"enabled": true}, "metrics": m{"annotations": true, "authentication": m{"secret": "own"}}}, false, "", "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			manifests := render(t, "drydock", tc.values)
			all := objects(t, manifests)
			text, err := lab.RenderedConfig(manifests)
			require.NoError(t, err)
			file := filepath.Join(t.TempDir(), "drydock.yaml")
			require.NoError(t, os.WriteFile(file, text, 0o600))
			c, _, err := config.Load(file, config.Options{SkipFiles: true})
			require.NoError(t, err)
			require.Equal(t, tc.authenticates, c.Metrics.Authenticate)

			require.Equal(t, tc.authenticates, may(t, tc.values, "create", "authentication.k8s.io", "tokenreviews"))
			require.Equal(t, tc.authenticates, may(t, tc.values, "create", "authorization.k8s.io", "subjectaccessreviews"))
			var roles []string
			for _, o := range all {
				if o.GetName() == "drydock-metrics" && strings.HasPrefix(o.GetKind(), "ClusterRole") {
					roles = append(roles, o.GetKind())
				}
			}
			if tc.authenticates {
				require.Equal(t, []string{"ClusterRole"}, roles, "nobody has it at first")
				var role rbacv1.ClusterRole
				find(t, all, "ClusterRole", "drydock-metrics", &role)
				require.Equal(t, []rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}}, role.Rules)
			} else {
				require.Empty(t, roles)
			}

			var d appsv1.Deployment
			find(t, all, "Deployment", "drydock", &d)
			require.Equal(t, tc.scheme, d.Spec.Template.Annotations["prometheus.io/scheme"])
			for _, file := range []string{c.Metrics.TLS.CertFile, c.Metrics.TLS.KeyFile} {
				if tc.authenticates {
					require.Contains(t, mounted(&d), file)
				} else {
					require.Empty(t, file)
					require.NotContains(t, mounted(&d), "/etc/drydock/metrics/tls.key")
				}
			}
			var o monitor
			find(t, all, "ServiceMonitor", "drydock", &o)
			e := o.Spec.Endpoints[0]
			require.Equal(t, tc.scheme, e.Scheme)
			require.Equal(t, tc.authenticates, e.BearerTokenFile == "/var/run/secrets/kubernetes.io/serviceaccount/token")
			require.Equal(t, tc.secret, e.TLSConfig.CA.Secret.Name)
			require.Equal(t, tc.serverName, e.TLSConfig.ServerName)
			require.False(t, e.TLSConfig.InsecureSkipVerify, "the token would go to anybody")

			o = monitor{}
			find(t, all, "PodMonitor", "drydock-agent", &o)
			require.Equal(t, endpoint{Port: "metrics"}, o.Spec.PodMetricsEndpoints[0], "the agents' metrics stay as they are")

			var policy networkingv1.NetworkPolicy
			find(t, all, "NetworkPolicy", "drydock", &policy)
			require.Equal(t, "metrics", policy.Spec.Ingress[1].Ports[0].Port.String(), "the port by its name, whatever it speaks")

			var made struct {
				Spec struct {
					SecretName string
					DNSNames   []string
				}
			}
			if tc.certificates != "" {
				find(t, all, "Certificate", "drydock-metrics", &made)
				require.Equal(t, []string{tc.certificates}, made.Spec.DNSNames)
				require.Equal(t, tc.secret, made.Spec.SecretName)
			} else {
				require.NotContains(t, manifests["drydock/templates/metrics.yaml"], "Certificate")
			}
		})
	}
}
