package kube

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
)

// LedgerStore stores the ledger in a ConfigMap. It implements engine.LedgerStore.
type LedgerStore struct {
	Client          kubernetes.Interface
	Namespace, Name string
	// Written as an annotation for people and for the kubectl plugin.
	Version string
}

var _ engine.LedgerStore = LedgerStore{}

// Load returns the ConfigMap's data and resourceVersion.
func (s LedgerStore) Load(ctx context.Context) (map[string]string, string, error) {
	cm, err := s.Client.CoreV1().ConfigMaps(s.Namespace).Get(ctx, s.Name, metav1.GetOptions{})
	if err != nil {
		return nil, "", translate("reading ConfigMap "+s.Namespace+"/"+s.Name, err)
	}
	return cm.Data, cm.ResourceVersion, nil
}

// Save replaces the ConfigMap's data if its resourceVersion is still version, or creates it if
// version is empty. It returns the new resourceVersion.
func (s LedgerStore) Save(ctx context.Context, data map[string]string, version string) (string, error) {
	cm := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.Namespace, Name: s.Name, ResourceVersion: version,
			Labels:      map[string]string{"app.kubernetes.io/name": "drydock", "app.kubernetes.io/component": "ledger"},
			Annotations: map[string]string{remediations.VersionKey: s.Version},
		},
		Data: data,
	}
	client := s.Client.CoreV1().ConfigMaps(s.Namespace)
	var err error
	if version == "" {
		cm, err = client.Create(ctx, cm, metav1.CreateOptions{FieldManager: remediations.FieldManager})
	} else {
		cm, err = client.Update(ctx, cm, metav1.UpdateOptions{FieldManager: remediations.FieldManager})
	}
	if err != nil {
		return "", translate("writing ConfigMap "+s.Namespace+"/"+s.Name, err)
	}
	return cm.ResourceVersion, nil
}
