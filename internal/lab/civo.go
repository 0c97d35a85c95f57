package lab

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/uuid"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/internal/lab/civosim"
)

// CivoNodes are n nodes whose machines are Civo's, node-0 and up.
func CivoNodes(n int) []NodeSpec {
	specs := make([]NodeSpec, n)
	for i := range specs {
		specs[i] = NodeSpec{Name: fmt.Sprintf("node-%d", i), ProviderID: "civo://" + uuid.NewString()}
	}
	return specs
}

// Civo is the simulated provider of a lab, and the file with the key that it asks for.
type Civo struct {
	*civosim.Server
	ClusterID, Region, KeyFile string
}

// CivoOptions say how the simulated provider behaves.
type CivoOptions struct {
	// RebootTime is how long a machine is away.
	RebootTime time.Duration
	// Machines is what becomes of machines; nil: they come back healthy.
	Machines civosim.Machines
}

// StartCivo simulates Civo over those of the lab's nodes whose providerID is Civo's. The caller closes it.
func (l *Lab) StartCivo(ctx context.Context, o CivoOptions) (*Civo, error) {
	nodes, err := l.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing the nodes for the Civo simulator: %w", err)
	}
	var instances []civosim.Instance
	for _, n := range nodes.Items {
		if id, ok := strings.CutPrefix(n.Spec.ProviderID, "civo://"); ok {
			instances = append(instances, civosim.Instance{ID: id, Hostname: n.Name})
		}
	}
	if o.Machines == nil {
		o.Machines = l.Machines()
	}
	c := &Civo{ClusterID: uuid.NewString(), Region: "LON1"}
	key := "civo-" + rand.Text()
	if c.KeyFile, err = l.WriteSecret("civo-api-key-"+rand.Text()[:6], key); err != nil {
		return nil, err
	}
	c.Server, err = civosim.New(civosim.Options{
		ClusterID: c.ClusterID, Region: c.Region, APIKey: key, Instances: instances,
		Machines: o.Machines, RebootTime: o.RebootTime,
	})
	return c, err
}

// Machines makes the provider's machines the lab's nodes.
func (l *Lab) Machines() civosim.Machines { return machines{l} }

type machines struct{ lab *Lab }

func (m machines) Reboot(ctx context.Context, in civosim.Instance, bootID string) error {
	return m.lab.Heal(ctx, in.Hostname, bootID)
}

func (m machines) Remove(ctx context.Context, in civosim.Instance) error {
	return m.lab.client.CoreV1().Nodes().Delete(ctx, in.Hostname, metav1.DeleteOptions{})
}

func (m machines) Add(ctx context.Context, in civosim.Instance) error {
	return m.lab.AddNode(ctx, NodeSpec{Name: in.Hostname, ProviderID: in.ProviderID(), Pool: in.Pool})
}

// WriteSecret writes a file that only this user may read.
func (l *Lab) WriteSecret(name, content string) (string, error) {
	path := filepath.Join(l.dir, name)
	if err := os.WriteFile(path, []byte(content+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("writing the secret %s: %w", name, err)
	}
	return path, nil
}
