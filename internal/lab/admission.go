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

// Admission is how a lab's Drydock serves admission. The API server reaches it
// by URL, as where the control plane is somebody else's, since nothing here
// routes to a Service.
type Admission struct {
	Port int
	// Webhook is laid over the webhook's part of the configuration: evictions,
	// exempt.
	Webhook map[string]any
}

// NewAdmission picks the port.
func NewAdmission(webhook map[string]any) (*Admission, error) {
	port, err := FreePort()
	if err != nil {
		return nil, err
	}
	return &Admission{Port: port, Webhook: webhook}, nil
}

// Values are the chart's for a Drydock with that configuration, as far as the
// chart reads it.
func (a *Admission) Values(config map[string]any) map[string]any {
	return map[string]any{
		"config":    overlay(map[string]any{"webhook": overlay(map[string]any{}, a.Webhook)}, config),
		"admission": map[string]any{"webhook": map[string]any{"url": a.URL()}},
	}
}

// URL is where the API server reaches the webhook. It goes by a name, since
// Drydock's certificates hold no addresses.
func (a *Admission) URL() string { return fmt.Sprintf("https://localhost:%d", a.Port) }

// config is the webhook's part of Drydock's configuration, with the names that
// the chart gives to a release of the namespace's name.
func (a *Admission) config(release, certDir string) map[string]any {
	return overlay(map[string]any{
		"listen": address(a.Port), "certDir": certDir, "dnsNames": []string{"localhost"},
		"secret":        map[string]any{"namespace": release, "name": release + "-webhook"},
		"configuration": release,
	}, a.Webhook)
}

// Project keeps a folder as a kubelet keeps one at which a Secret is mounted:
// with a file for each key, each written whole, and changed soon after the
// Secret is. A real kubelet may take a minute or two; here it is at once. It
// ends with the lab.
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
			// Only a test would see what fails here, and it will.
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
