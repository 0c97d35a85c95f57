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

// The shortest lifetime that the API server allows.
const tokenFor = 10 * time.Minute

// Tokens requests tokens of a ServiceAccount, so that Drydock can authenticate at another service.
// The ServiceAccount has only the rights that this service checks. Each token is used for half of
// its lifetime.
type Tokens struct {
	Client          kubernetes.Interface
	Namespace, Name string
	// If it is empty, the tokens are for the API server itself.
	Audiences []string
	Now       func() time.Time

	mu    sync.Mutex
	token string
	until time.Time
}

// Token returns a token that stays valid for some minutes. If the right to request one is missing,
// the error names it.
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
		return "", fmt.Errorf("requesting a token of ServiceAccount %s/%s (Drydock needs the right to create serviceaccounts/token with this name): %w", t.Namespace, t.Name, err)
	}
	t.token, t.until = answer.Status.Token, t.Now().Add(tokenFor/2)
	return t.token, nil
}
