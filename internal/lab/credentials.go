package lab

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// The token need not be secret, because the API server listens only on loopback and lives for
// minutes. A client certificate would not pass through a proxy.
const kubeletToken = "drydock-lab-kubelet"

func (l *Lab) certDir() string { return filepath.Join(l.dir, "certs") }

func (l *Lab) tokenFile() string { return filepath.Join(l.certDir(), "tokens.csv") }

func (l *Lab) makeCredentials() error {
	var err error
	if l.ca, err = newAuthority(l.certDir()); err != nil {
		return err
	}
	if l.serving, err = l.ca.issue("serving"); err != nil {
		return err
	}
	if _, err = l.ca.issue("service-accounts"); err != nil {
		return err
	}
	// The kubelets are in the group system:nodes, as real kubelets are, because admission checks
	// that. They are also in system:masters, in place of the Node authorizer, which needs one
	// identity for each node. The user name is not that of a node, because NodeRestriction would
	// then need one for each node, too.
	tokens := kubeletToken + `,drydock-lab-kubelets,drydock-lab-kubelets,"system:nodes,system:masters"` + "\n"
	if err := os.WriteFile(l.tokenFile(), []byte(tokens), 0o600); err != nil {
		return fmt.Errorf("writing the kubelets' token: %w", err)
	}
	return nil
}

func (l *Lab) userConfig(name string, groups ...string) (*rest.Config, error) {
	k, err := l.ca.issue(name, groups...)
	if err != nil {
		return nil, err
	}
	c := l.anonymousConfig()
	c.CertData, c.KeyData = k.certPEM, k.keyPEM
	return c, nil
}

func (l *Lab) anonymousConfig() *rest.Config {
	return &rest.Config{
		Host:            l.api,
		TLSClientConfig: rest.TLSClientConfig{CAData: l.ca.certPEM},
		QPS:             -1, // no limit in the client, because the API server has its own
	}
}

func (l *Lab) kubeletConfig() *rest.Config {
	c := l.anonymousConfig()
	c.BearerToken = kubeletToken
	return c
}

func (l *Lab) writeKubeconfig(name string, c *rest.Config) (string, error) {
	path := filepath.Join(l.dir, name+".kubeconfig")
	file := clientcmdapi.Config{
		CurrentContext: "lab",
		Contexts:       map[string]*clientcmdapi.Context{"lab": {Cluster: "lab", AuthInfo: "lab"}},
		Clusters:       map[string]*clientcmdapi.Cluster{"lab": {Server: c.Host, CertificateAuthorityData: c.CAData}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"lab": {
			ClientCertificateData: c.CertData,
			ClientKeyData:         c.KeyData,
			Token:                 c.BearerToken,
		}},
	}
	if err := clientcmd.WriteToFile(file, path); err != nil {
		return "", fmt.Errorf("writing the kubeconfig of %s: %w", name, err)
	}
	return path, nil
}

// AdminKubeconfig returns the path of an administrator's kubeconfig.
func (l *Lab) AdminKubeconfig() string { return filepath.Join(l.dir, "admin.kubeconfig") }

// ServiceAccountKubeconfig writes a kubeconfig with a token of a service account, which it creates
// if needed. server is the URL of a Proxy, or empty for the API server itself.
func (l *Lab) ServiceAccountKubeconfig(ctx context.Context, namespace, name, server string) (string, error) {
	token, err := l.ServiceAccountToken(ctx, namespace, name)
	if err != nil {
		return "", err
	}
	c := l.anonymousConfig()
	c.BearerToken = token
	file := namespace + "-" + name
	if server != "" {
		c.Host = server
		// The port makes the name unique, because one account may have a kubeconfig for each proxy.
		file += "-" + server[strings.LastIndex(server, ":")+1:]
	}
	return l.writeKubeconfig(file, c)
}

// ServiceAccountToken returns a token of a service account, which it creates if needed.
func (l *Lab) ServiceAccountToken(ctx context.Context, namespace, name string) (string, error) {
	fail := func(err error) (string, error) {
		return "", fmt.Errorf("making a token of service account %s/%s: %w", namespace, name, err)
	}
	meta := metav1.ObjectMeta{Name: namespace}
	_, err := l.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: meta}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fail(err)
	}
	accounts := l.client.CoreV1().ServiceAccounts(namespace)
	meta = metav1.ObjectMeta{Name: name}
	_, err = accounts.Create(ctx, &corev1.ServiceAccount{ObjectMeta: meta}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fail(err)
	}
	day := int64(24 * 60 * 60)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &day}}
	token, err := accounts.CreateToken(ctx, name, request, metav1.CreateOptions{})
	if err != nil {
		return fail(err)
	}
	return token.Status.Token, nil
}
