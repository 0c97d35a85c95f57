package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/internal/lab"
)

const requestsARound = 60

// measureAdmission measures requests without a webhook, with a trivial webhook, and with Drydock's
// webhook, in turn.
func (y *yard) measureAdmission() error {
	trivial, err := y.trivialWebhook()
	if err != nil {
		return err
	}
	ours, policy, err := y.withAdmission()
	if err != nil {
		return err
	}
	// Drydock's webhook judges a cordon. It never receives a change of another owner's annotation.
	node, cordoned := nodeName(1), false
	concerning := func(ctx context.Context) error {
		cordoned = !cordoned
		body := fmt.Appendf(nil, `{"spec":{"unschedulable":%t}}`, cordoned)
		return y.fleet.client.CoreV1().RESTClient().Patch(types.MergePatchType).Resource("nodes").Name(node).Body(body).Do(ctx).Error()
	}
	foreign := func(ctx context.Context) error { return y.touch(ctx, node) }
	ways := []struct {
		name  string
		hooks []any
	}{{"none", nil}, {"trivial", []any{trivial}}, {"ours", []any{ours}}, {"ours and the policy", append([]any{ours}, policy...)}}
	concern, other := map[string][]time.Duration{}, map[string][]time.Duration{}
	for range y.rounds {
		for _, w := range ways {
			if err := y.intercept(w.hooks); err != nil {
				return err
			}
			for range requestsARound {
				for _, s := range []struct {
					into map[string][]time.Duration
					send func(context.Context) error
				}{{concern, concerning}, {other, foreign}} {
					began := time.Now()
					if err := s.send(y.ctx); err != nil {
						return err
					}
					s.into[w.name] = append(s.into[w.name], time.Since(began))
				}
			}
		}
	}
	at := func(m map[string][]time.Duration, way string) float64 { return float64(median(m[way])) }
	y.table.add(row{
		what: "admission, a request that concerns Drydock (a cordon)", nodes: y.fleet.size, measured: ms(median(concern["ours"])),
		reference: fmt.Sprintf("a trivial webhook: %s; none: %s; with the policy, too: %s", ms(median(concern["trivial"])), ms(median(concern["none"])), ms(median(concern["ours and the policy"]))),
		ratio:     times(at(concern, "ours"), at(concern, "trivial")), target: "≤ 1.3", verdict: reached(at(concern, "ours") <= 1.3*at(concern, "trivial")),
	})
	y.table.add(row{
		what: "admission, one that does not (an annotation)", nodes: y.fleet.size, measured: ms(median(other["ours"])),
		reference: fmt.Sprintf("no webhook: %s; with the policy, too: %s", ms(median(other["none"])), ms(median(other["ours and the policy"]))),
		ratio:     times(at(other, "ours"), at(other, "none")), target: "≤ 1.1", verdict: reached(at(other, "ours") <= 1.1*at(other, "none")),
	})
	return nil
}

const (
	ourHooks     = lab.Namespace
	trivialHooks = "bench-trivial"
)

func (y *yard) intercept(hooks []any) error {
	api := y.lab.Client().AdmissionregistrationV1()
	for _, name := range []string{ourHooks, trivialHooks} {
		_ = api.ValidatingWebhookConfigurations().Delete(y.ctx, name, metav1.DeleteOptions{}) // an error is ignored, because it may not exist
	}
	_ = api.ValidatingAdmissionPolicyBindings().Delete(y.ctx, ourHooks, metav1.DeleteOptions{})
	for _, h := range hooks {
		var err error
		switch h := h.(type) {
		case *admissionregistrationv1.ValidatingWebhookConfiguration:
			_, err = api.ValidatingWebhookConfigurations().Create(y.ctx, h, metav1.CreateOptions{})
		case *admissionregistrationv1.ValidatingAdmissionPolicyBinding:
			_, err = api.ValidatingAdmissionPolicyBindings().Create(y.ctx, h, metav1.CreateOptions{})
		}
		if err != nil {
			return fmt.Errorf("setting up admission: %w", err)
		}
	}
	y.pause(2 * time.Second) // the API server learns of a change by a watch
	return nil
}

func (y *yard) withAdmission() (webhook *admissionregistrationv1.ValidatingWebhookConfiguration, policy []any, err error) {
	if err := y.stopDrydock(); err != nil {
		return nil, nil, err
	}
	a, err := lab.NewAdmission(nil)
	if err != nil {
		return nil, nil, err
	}
	if err := y.lab.InstallChart(y.ctx, lab.Namespace, lab.Namespace, a.Values(map[string]any{"mode": "enforce"})); err != nil {
		return nil, nil, err
	}
	if err := y.startDrydock(lab.DrydockOptions{Name: "drydock-admission", Admission: a}); err != nil {
		return nil, nil, err
	}
	api := y.lab.Client().AdmissionregistrationV1()
	if err := y.until(30*time.Second, "the webhook to have its certificate", func() (bool, error) {
		webhook, err = api.ValidatingWebhookConfigurations().Get(y.ctx, ourHooks, metav1.GetOptions{})
		return err == nil && len(webhook.Webhooks[0].ClientConfig.CABundle) > 0, err
	}); err != nil {
		return nil, nil, err
	}
	binding, err := api.ValidatingAdmissionPolicyBindings().Get(y.ctx, ourHooks, metav1.GetOptions{})
	if err != nil {
		return nil, nil, err
	}
	webhook.ResourceVersion, webhook.UID = "", ""
	binding.ResourceVersion, binding.UID = "", ""
	return webhook, []any{binding}, nil
}

func (y *yard) trivialWebhook() (*admissionregistrationv1.ValidatingWebhookConfiguration, error) {
	cert, key, authority, err := certificate(y.dir)
	if err != nil {
		return nil, err
	}
	_, url, err := y.startReference(referenceWebhook, cert, key)
	if err != nil {
		return nil, err
	}
	url = strings.Replace(url, "http://", "https://", 1)
	ignore, none, within := admissionregistrationv1.Ignore, admissionregistrationv1.SideEffectClassNone, int32(2)
	return &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: trivialHooks},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "trivial.bench.example.com", AdmissionReviewVersions: []string{"v1"}, FailurePolicy: &ignore, SideEffects: &none, TimeoutSeconds: &within,
			ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: authority},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Update},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"nodes"}},
			}},
		}},
	}, nil
}

func certificate(dir string) (certFile, keyFile string, authority []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", "", nil, err
	}
	t := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "bench"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, t, t, &key.PublicKey, key)
	if err != nil {
		return "", "", nil, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return "", "", nil, err
	}
	authority = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	certFile, keyFile = filepath.Join(dir, "trivial.crt"), filepath.Join(dir, "trivial.key")
	if err := os.WriteFile(certFile, authority, 0o600); err != nil {
		return "", "", nil, err
	}
	return certFile, keyFile, authority, os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600)
}
