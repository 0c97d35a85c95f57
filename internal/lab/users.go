package lab

import (
	"fmt"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// ConfigAs is the configuration of any user, by the administrator's right to
// impersonate. The user may do what the groups and the user may do: with
// system:masters among the groups, everything.
func (l *Lab) ConfigAs(user string, groups ...string) *rest.Config {
	c := rest.CopyConfig(l.admin)
	c.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
	return c
}

// ClientAs is a client of any user, by impersonation.
func (l *Lab) ClientAs(user string, groups ...string) (kubernetes.Interface, error) {
	client, err := kubernetes.NewForConfig(l.ConfigAs(user, groups...))
	if err != nil {
		return nil, fmt.Errorf("making a client of %s: %w", user, err)
	}
	return client, nil
}

// NodeClient is a client with the certificate of a node's kubelet, bound by the
// Node authorizer and NodeRestriction as a real one is.
func (l *Lab) NodeClient(node string) (kubernetes.Interface, error) {
	c, err := l.userConfig("system:node:"+node, "system:nodes")
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(c)
	if err != nil {
		return nil, fmt.Errorf("making a client of node %s: %w", node, err)
	}
	return client, nil
}

// UserKubeconfig writes a kubeconfig with a certificate of the user, for
// kubectl and its likes.
func (l *Lab) UserKubeconfig(user string, groups ...string) (string, error) {
	c, err := l.userConfig(user, groups...)
	if err != nil {
		return "", err
	}
	return l.writeKubeconfig(user, c)
}
