package admission

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/test/admission/requests"
	"drydock.dev/drydock/webhook"
)

// server runs only the admission server, under the chart's ServiceAccount, with certificates that
// are renewed every few seconds.
func server(t *testing.T, l *lab.Lab, admission *lab.Admission, name string) *webhook.Server {
	t.Helper()
	certDir := filepath.Join(t.TempDir(), "certs")
	require.NoError(t, l.Project(t.Context(), lab.Namespace, "drydock-webhook", certDir))
	return serverOf(t, l, admission, name, certDir)
}

// serverOf is server with its folder of certificates.
func serverOf(t *testing.T, l *lab.Lab, admission *lab.Admission, name, certDir string) *webhook.Server {
	t.Helper()
	path, err := l.ServiceAccountKubeconfig(t.Context(), lab.Namespace, "drydock", "")
	require.NoError(t, err)
	config, err := clientcmd.BuildConfigFromFlags("", path)
	require.NoError(t, err)
	clients, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	mgr, err := manager.New(rest.CopyConfig(config), manager.Options{Logger: logr.Discard(), Metrics: metricsserver.Options{BindAddress: "0"}})
	require.NoError(t, err)
	s, err := webhook.Add(mgr, webhook.Options{
		Listen: fmt.Sprintf("127.0.0.1:%d", admission.Port), CertDir: certDir,
		Rotation: &webhook.Rotation{
			Secret: types.NamespacedName{Namespace: lab.Namespace, Name: "drydock-webhook"}, DNSNames: []string{"localhost"},
			Configuration: name, Validity: 10 * time.Minute, RenewBefore: 10*time.Minute - 5*time.Second, CheckEvery: time.Second,
		},
		Config: requests.Config(remediations.ModeEnforce), Exempt: requests.Exempt, Client: clients,
		Node: func(string) *corev1.Node { return nil }, Nodes: func() []*corev1.Node { return nil }, Repairing: func() []*corev1.Node { return nil },
		Log: logr.Discard(), Clock: clock.RealClock{},
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	return s
}

// served is the certificate that the server shows, and whether the authority in the webhook's
// configuration, which the API server trusts, has signed it.
func served(t *testing.T, l *lab.Lab, port int) (cert *x509.Certificate, trusted bool) {
	t.Helper()
	configuration, err := l.Client().AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(t.Context(), "drydock", metav1.GetOptions{})
	require.NoError(t, err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(configuration.Webhooks[0].ClientConfig.CABundle)
	conn, err := tls.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port), &tls.Config{RootCAs: roots, ServerName: "localhost"})
	var verification *tls.CertificateVerificationError
	if errors.As(err, &verification) {
		return nil, false
	}
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	return conn.ConnectionState().PeerCertificates[0], true
}

// TestCertificateIsRenewed, and served on, while the API server continues to ask.
func TestCertificateIsRenewed(t *testing.T) {
	l := lab.Shared(t)
	admission, err := lab.NewAdmission(map[string]any{"exempt": exempt()})
	require.NoError(t, err)
	v := admission.Values(map[string]any{"mode": "enforce"})
	v["admission"].(map[string]any)["policy"] = map[string]any{"enabled": false}
	// One that another test left is good for a year.
	err = l.Client().CoreV1().Secrets(lab.Namespace).Delete(t.Context(), "drydock-webhook", metav1.DeleteOptions{})
	require.True(t, err == nil || apierrors.IsNotFound(err), "%v", err)
	require.NoError(t, l.InstallChart(t.Context(), "drydock", lab.Namespace, v))
	t.Cleanup(func() { removeAdmission(t, l) })
	s := server(t, l, admission, "drydock")
	await(t, "the server", func() bool { return s.Ready() == nil })
	first, trusted := served(t, l, admission.Port)
	require.True(t, trusted)
	require.Contains(t, first.DNSNames, "localhost")
	await(t, "the API server to ask it", func() bool { return forged(t, l) == "webhook" })

	for range 2 {
		before, _ := served(t, l, admission.Port)
		await(t, "another certificate", func() bool {
			require.Equal(t, "webhook", forged(t, l), "the API server got no answer")
			now, trusted := served(t, l, admission.Port)
			require.True(t, trusted)
			return now.NotAfter.After(before.NotAfter)
		})
	}
	require.NoError(t, s.Ready())

	// Another authority: the API server gets it, and asks on. Between the two, for as long as the
	// Secret takes to its mount, it gets no answer, and goes by the policy alone.
	secrets := l.Client().CoreV1().Secrets(lab.Namespace)
	secret, err := secrets.Get(t.Context(), "drydock-webhook", metav1.GetOptions{})
	require.NoError(t, err)
	authority := secret.Data["ca.crt"]
	_, err = secrets.Patch(t.Context(), "drydock-webhook", types.MergePatchType, []byte(`{"data":null}`), metav1.PatchOptions{})
	require.NoError(t, err)
	await(t, "another authority", func() bool {
		secret, err := secrets.Get(t.Context(), "drydock-webhook", metav1.GetOptions{})
		require.NoError(t, err)
		return len(secret.Data["ca.crt"]) > 0 && string(secret.Data["ca.crt"]) != string(authority)
	})
	await(t, "the API server to trust it", func() bool {
		_, trusted := served(t, l, admission.Port)
		return trusted && forged(t, l) == "webhook"
	})
}

// TestTheCertificateIsServedBeforeTheKubeletMountsIt: a kubelet may take more than a minute to
// bring a Secret that was empty when the pod started. When the files come, they are served.
func TestTheCertificateIsServedBeforeTheKubeletMountsIt(t *testing.T) {
	l := lab.Shared(t)
	admission, err := lab.NewAdmission(map[string]any{"exempt": exempt()})
	require.NoError(t, err)
	v := admission.Values(map[string]any{"mode": "enforce"})
	v["admission"].(map[string]any)["policy"] = map[string]any{"enabled": false}
	err = l.Client().CoreV1().Secrets(lab.Namespace).Delete(t.Context(), "drydock-webhook", metav1.DeleteOptions{})
	require.True(t, err == nil || apierrors.IsNotFound(err), "%v", err)
	require.NoError(t, l.InstallChart(t.Context(), "drydock", lab.Namespace, v))
	t.Cleanup(func() { removeAdmission(t, l) })
	certDir := t.TempDir()
	s := serverOf(t, l, admission, "drydock", certDir)
	await(t, "the server", func() bool { return s.Ready() == nil })
	_, trusted := served(t, l, admission.Port)
	require.True(t, trusted, "a server that is ready is one that the API server trusts")
	await(t, "the API server to ask it", func() bool { return forged(t, l) == "webhook" })
	files, err := os.ReadDir(certDir)
	require.NoError(t, err)
	require.Empty(t, files, "nothing was mounted")

	require.NoError(t, l.Project(t.Context(), lab.Namespace, "drydock-webhook", certDir))
	before, _ := served(t, l, admission.Port)
	await(t, "a renewed certificate from the files", func() bool {
		now, trusted := served(t, l, admission.Port)
		return trusted && now.NotAfter.After(before.NotAfter)
	})
}

// TestWithoutItsSecretTheServerWaits: the log names it, nothing ends, and it serves then.
func TestWithoutItsSecretTheServerWaits(t *testing.T) {
	l := lab.Shared(t)
	admission, err := lab.NewAdmission(nil)
	require.NoError(t, err)
	require.NoError(t, l.InstallChart(t.Context(), "drydock", lab.Namespace, admission.Values(map[string]any{"mode": "enforce"})))
	t.Cleanup(func() { removeAdmission(t, l) })
	secrets := l.Client().CoreV1().Secrets(lab.Namespace)
	require.NoError(t, secrets.Delete(t.Context(), "drydock-webhook", metav1.DeleteOptions{}))
	s := server(t, l, admission, "drydock")
	await(t, "it to say so", func() bool {
		err := s.Ready()
		return err != nil && apierrors.IsNotFound(err)
	})
	require.ErrorContains(t, s.Ready(), "Secret drydock/drydock-webhook, which the chart makes")
	_, err = secrets.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "drydock-webhook"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	await(t, "the server", func() bool { return s.Ready() == nil })
}

// TestRightsOfTheRotator: one Secret and one configuration, and no other.
func TestRightsOfTheRotator(t *testing.T) {
	l := lab.Shared(t)
	admission, err := lab.NewAdmission(nil)
	require.NoError(t, err)
	require.NoError(t, l.InstallChart(t.Context(), "drydock", lab.Namespace, admission.Values(map[string]any{"mode": "enforce"})))
	t.Cleanup(func() { removeAdmission(t, l) })
	drydock, err := l.ClientAs(requests.Drydock.Name, requests.Drydock.Groups...)
	require.NoError(t, err)
	await(t, "its own Secret", func() bool {
		_, err := drydock.CoreV1().Secrets(lab.Namespace).Get(t.Context(), "drydock-webhook", metav1.GetOptions{})
		return err == nil
	})
	_, err = drydock.CoreV1().Secrets(lab.Namespace).List(t.Context(), metav1.ListOptions{})
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	_, err = drydock.CoreV1().Secrets(lab.Namespace).Get(t.Context(), "another", metav1.GetOptions{})
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	_, err = drydock.AdmissionregistrationV1().ValidatingWebhookConfigurations().List(t.Context(), metav1.ListOptions{})
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	err = drydock.AdmissionregistrationV1().ValidatingWebhookConfigurations().Delete(t.Context(), "drydock", metav1.DeleteOptions{})
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	_, err = drydock.CoreV1().Pods("default").Get(t.Context(), "p", metav1.GetOptions{})
	require.True(t, apierrors.IsForbidden(err), "pods are read only where evictions are asked for: %v", err)
}
