package lab

import (
	"context"
	"fmt"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// ConfigAs returns a configuration that impersonates a user with these groups. The group
// system:masters has every right.
func (l *Lab) ConfigAs(user string, groups ...string) *rest.Config {
	c := rest.CopyConfig(l.admin)
	c.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
	return c
}

// ClientAs returns a client for any user, by impersonation.
func (l *Lab) ClientAs(user string, groups ...string) (kubernetes.Interface, error) {
	client, err := kubernetes.NewForConfig(l.ConfigAs(user, groups...))
	if err != nil {
		return nil, fmt.Errorf("making a client of %s: %w", user, err)
	}
	return client, nil
}

// NodeClient returns a client with the certificate of a node's kubelet. The Node authorizer and
// NodeRestriction limit it as they limit a real kubelet.
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

// UserKubeconfig writes a kubeconfig with a certificate of the user, for programs like kubectl.
func (l *Lab) UserKubeconfig(user string, groups ...string) (string, error) {
	c, err := l.userConfig(user, groups...)
	if err != nil {
		return "", err
	}
	return l.writeKubeconfig(user, c)
}

// People is the namespace with the service accounts that stand for people.
const People = "people"

// PersonKubeconfig writes a kubeconfig of a service account in People, whose ClusterRole has these
// rules, in YAML. It waits until the authorizer knows them. server is the URL of a Proxy, or empty
// for the API server itself.
func (l *Lab) PersonKubeconfig(ctx context.Context, name, rules, server string) (string, error) {
	kubeconfig, err := l.ServiceAccountKubeconfig(ctx, People, name, server)
	if err != nil {
		return "", err
	}
	if err := l.Apply(ctx, fmt.Appendf(nil, `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: %[1]s}
rules: %[2]s
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: %[1]s}
subjects: [{kind: ServiceAccount, namespace: %[3]s, name: %[1]s}]
`, name, rules, People)); err != nil {
		return "", err
	}
	if !strings.Contains(rules, "nodes") {
		return kubeconfig, nil // without rules, there is no right to wait for
	}
	right := authorizationv1.ResourceAttributes{Verb: "list", Resource: "nodes"}
	return kubeconfig, l.AwaitRight(ctx, "system:serviceaccount:"+People+":"+name, right)
}

// AwaitRight waits until the user has the right: the authorizer sees a new role only a moment
// later.
func (l *Lab) AwaitRight(ctx context.Context, user string, right authorizationv1.ResourceAttributes) error {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: &right}}
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, Patience, true, func(ctx context.Context) (bool, error) {
		answer, err := l.client.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		return err == nil && answer.Status.Allowed, nil
	})
	if err != nil {
		return fmt.Errorf("waiting until %s may %s %s: %w", user, right.Verb, right.Resource, err)
	}
	return nil
}
