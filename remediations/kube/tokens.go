package kube

import (
	"context"
	"fmt"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// tokenFor is the requested lifetime of a token: the shortest that the API server gives.
const tokenFor = 10 * time.Minute

// Tokens requests tokens of a ServiceAccount from the API server. The ServiceAccount has only the
// rights that the receiver of the token checks. Each token is kept for half of its life.
type Tokens struct {
	Client          kubernetes.Interface
	Namespace, Name string
	// Audiences of the tokens; empty: the API server's own.
	Audiences []string
	Now       func() time.Time

	mu    sync.Mutex
	token string
	until time.Time
}

// Token returns a token that is valid for some minutes more. The error names the right that may be
// missing.
func (t *Tokens) Token(ctx context.Context) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.token != "" && t.Now().Before(t.until) {
		return t.token, nil
	}
	seconds := int64(tokenFor.Seconds())
	answer, err := t.Client.CoreV1().ServiceAccounts(t.Namespace).CreateToken(ctx, t.Name, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{Audiences: t.Audiences, ExpirationSeconds: &seconds},
	}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("asking for a token of ServiceAccount %s/%s, which needs the right to create serviceaccounts/token of that name: %w", t.Namespace, t.Name, err)
	}
	t.token, t.until = answer.Status.Token, t.Now().Add(tokenFor/2)
	return t.token, nil
}
