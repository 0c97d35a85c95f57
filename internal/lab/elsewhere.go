package lab

import (
	"net"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Credentials are the certificates and tokens that a control plane outside the lab must accept.
type Credentials struct {
	Files   APIServerFiles
	Version string // Kubernetes' version
	// Issue makes a certificate for a client with that name, and for a server at these addresses
	// and on loopback.
	Issue func(addresses []net.IP, name string, groups ...string) (cert, key []byte, err error)
}

// APIServerFiles are the paths of files for kube-apiserver.
type APIServerFiles struct {
	CA, Cert, Key, Tokens string
	ServiceAccounts       string // the key that signs the tokens of service accounts
}

func (l *Lab) apiServerFiles() APIServerFiles {
	return APIServerFiles{
		CA: l.ca.file(), Cert: l.serving.certFile, Key: l.serving.keyFile, Tokens: l.tokenFile(),
		ServiceAccounts: filepath.Join(l.certDir(), "service-accounts.key"),
	}
}

// APIServerArgs returns the arguments that every kube-apiserver of a lab has. They contain no
// addresses.
func APIServerArgs(f APIServerFiles) []string {
	return []string{
		"--service-cluster-ip-range=10.0.0.0/24",
		"--tls-cert-file=" + f.Cert, "--tls-private-key-file=" + f.Key,
		"--client-ca-file=" + f.CA, "--token-auth-file=" + f.Tokens,
		"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction", "--allow-privileged=true",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + f.ServiceAccounts,
		"--service-account-signing-key-file=" + f.ServiceAccounts,
		"--api-audiences=https://kubernetes.default.svc",
	}
}

func (l *Lab) credentials() Credentials {
	return Credentials{
		Files: l.apiServerFiles(), Version: l.version,
		Issue: func(addresses []net.IP, name string, groups ...string) (cert, key []byte, err error) {
			k, err := l.ca.issueFor(addresses, name, groups...)
			return k.certPEM, k.keyPEM, err
		},
	}
}

// Node returns the Node that this node's kubelet registers.
func (s NodeSpec) Node(now time.Time, version string) *corev1.Node { return s.node(now, version) }
