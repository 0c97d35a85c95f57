package lab

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// WriteSecret writes a file that only this user may read. Leaks later searches for the content
// elsewhere.
func (l *Lab) WriteSecret(name, content string) (string, error) {
	path := filepath.Join(l.dir, name)
	if err := os.WriteFile(path, []byte(content+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("writing the secret %s: %w", name, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.secrets == nil {
		l.secrets = map[string]string{}
	}
	l.secrets[name] = content
	return path, nil
}

// Leaks returns where a secret of the lab appears although it must not: in a log, a Node, an Event,
// a ConfigMap or a Lease.
func (l *Lab) Leaks(ctx context.Context) ([]string, error) {
	written := map[string]string{}
	logs, err := filepath.Glob(filepath.Join(l.LogDir(), "*"))
	if err != nil {
		return nil, fmt.Errorf("looking for the lab's logs: %w", err)
	}
	for _, file := range logs {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("looking for secrets in a log: %w", err)
		}
		written["the log "+filepath.Base(file)] = string(data)
	}
	all := metav1.ListOptions{}
	for what, list := range map[string]func() (any, error){
		"a Node":      func() (any, error) { return l.client.CoreV1().Nodes().List(ctx, all) },
		"an Event":    func() (any, error) { return l.client.EventsV1().Events("").List(ctx, all) },
		"a ConfigMap": func() (any, error) { return l.client.CoreV1().ConfigMaps("").List(ctx, all) },
		"a Lease":     func() (any, error) { return l.client.CoordinationV1().Leases("").List(ctx, all) },
	} {
		objects, err := list()
		if err != nil {
			return nil, fmt.Errorf("looking for secrets in %s: %w", what, err)
		}
		written[what] = fmt.Sprintf("%+v", objects)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var leaks []string
	for name, secret := range l.secrets {
		for where, text := range written {
			if strings.Contains(text, secret) {
				leaks = append(leaks, fmt.Sprintf("the secret %s is in %s", name, where))
			}
		}
	}
	return leaks, nil
}
