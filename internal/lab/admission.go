package lab

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// Admission makes a lab's Drydock serve the admission webhook. The API server reaches the webhook
// by its URL, because nothing in a lab routes to a Service.
type Admission struct {
	Port int
	// Webhook is merged over the webhook's part of the configuration, for example evictions and
	// exempt.
	Webhook map[string]any
}

// NewAdmission returns an Admission with a free port.
func NewAdmission(webhook map[string]any) (*Admission, error) {
	port, err := FreePort()
	if err != nil {
		return nil, err
	}
	return &Admission{Port: port, Webhook: webhook}, nil
}

// Values returns the chart's values for a Drydock with this configuration.
func (a *Admission) Values(config map[string]any) map[string]any {
	return map[string]any{
		"config":    overlay(map[string]any{"webhook": overlay(map[string]any{}, a.Webhook)}, config),
		"admission": map[string]any{"webhook": map[string]any{"enabled": true, "url": a.URL()}},
	}
}

// URL returns the webhook's URL. It has a host name, because Drydock's certificates have no IP
// addresses.
func (a *Admission) URL() string { return fmt.Sprintf("https://localhost:%d", a.Port) }

// The names are those that the chart uses for a release named like the namespace.
func (a *Admission) config(release, certDir string) map[string]any {
	return overlay(map[string]any{
		"listen": address(a.Port), "certDir": certDir, "dnsNames": []string{"localhost"},
		"secret":        map[string]any{"namespace": release, "name": release + "-webhook"},
		"configuration": release,
	}, a.Webhook)
}

// Project writes a Secret's keys into a folder as a kubelet does for a mounted Secret, until the
// lab ends. It updates them at once, while a real kubelet may take a minute or two.
func (l *Lab) Project(ctx context.Context, namespace, secret, dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("making the folder of Secret %s/%s: %w", namespace, secret, err)
	}
	write := func(o any) {
		s, ok := o.(*corev1.Secret)
		if !ok {
			return
		}
		for key, data := range s.Data {
			fresh := filepath.Join(dir, "."+key)
			if os.WriteFile(fresh, data, 0o600) == nil {
				_ = os.Rename(fresh, filepath.Join(dir, key))
			}
		}
	}
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.NewFilteredListWatchFromClient(l.client.CoreV1().RESTClient(), "secrets", namespace, func(o *metav1.ListOptions) {
			o.FieldSelector = "metadata.name=" + secret
		}),
		ObjectType: &corev1.Secret{},
		Handler:    cache.ResourceEventHandlerFuncs{AddFunc: write, UpdateFunc: func(_, o any) { write(o) }},
	})
	ctx, end := context.WithCancel(context.WithoutCancel(ctx))
	l.mu.Lock()
	l.ends = append(l.ends, end)
	l.mu.Unlock()
	go informer.RunWithContext(ctx)
	return nil
}
