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

// server starts a Drydock that only serves admission, with the chart's ServiceAccount. Its
// certificates are renewed every few seconds.
func server(t *testing.T, l *lab.Lab, admission *lab.Admission, name string) *webhook.Server {
	t.Helper()
	certDir := filepath.Join(t.TempDir(), "certs")
	require.NoError(t, l.Project(t.Context(), lab.Namespace, "drydock-webhook", certDir))
	return serverOf(t, l, admission, name, certDir)
}

// serverOf does the same as server, with this folder for its certificates.
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

// served returns the certificate that the server shows. trusted reports whether the authority in
// the webhook's configuration, which the API server uses, has signed it.
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

// TestCertificateIsRenewed: the server uses the new certificate, and the API server continues to
// call the webhook.
func TestCertificateIsRenewed(t *testing.T) {
	l := lab.Shared(t)
	admission, err := lab.NewAdmission(map[string]any{"exempt": exempt()})
	require.NoError(t, err)
	v := admission.Values(map[string]any{"mode": "enforce"})
	v["admission"].(map[string]any)["policy"] = map[string]any{"enabled": false}
	// The certificate of an earlier test would be valid for a year.
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

	// The authority changes, too. The API server learns the new one and continues. Until the
	// kubelet has updated the mounted Secret, calls of the webhook fail, and only the policy
	// decides.
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

// TestTheCertificateIsServedBeforeTheKubeletMountsIt: if the Secret was empty when the pod started,
// a kubelet may take more than a minute to update the mounted files. Until then the server uses the
// certificate from memory. Afterwards it uses the files.
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

// TestWithoutItsSecretTheServerWaits: the log names the missing Secret, and the process does not
// end. When the Secret exists, it serves.
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

// TestRightsOfTheRotator: it may write one Secret and one webhook configuration, and no others.
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
