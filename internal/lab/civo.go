package lab

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/internal/lab/civosim"
)

// CivoNodes returns n nodes with Civo's machines: node-0, node-1 and so on.
func CivoNodes(n int) []NodeSpec {
	specs := make([]NodeSpec, n)
	for i := range specs {
		specs[i] = NodeSpec{Name: fmt.Sprintf("node-%d", i), ProviderID: "civo://" + uuid.NewString()}
	}
	return specs
}

// Civo is the simulated Civo of a lab. KeyFile is the file with the API key that it requires.
type Civo struct {
	*civosim.Server
	ClusterID, Region, KeyFile string

	lab *Lab
}

// Close stops the simulator. Machines that are rebooting come up unchanged.
func (c *Civo) Close() {
	c.Server.Close()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	for _, in := range c.Instances() {
		if c.lab.isOff(in.Hostname) {
			if err := c.lab.On(ctx, in.Hostname, uuid.NewString(), false); err != nil {
				c.lab.forget(in.Hostname) // if the Node is gone or cannot be reached now, it shows this later
			}
		}
	}
}

// CivoOptions define how the simulated Civo behaves.
type CivoOptions struct {
	// RebootTime is how long a reboot takes. If it is longer than the lab's NodeGrace, the node's
	// conditions become Unknown in between. DeleteTime and BuildTime are how long a recycle deletes
	// the old machine and builds the new one.
	RebootTime, DeleteTime, BuildTime time.Duration
	KeepHostname                      bool
	// Cures reports whether a reboot repairs the machine. Nil means always.
	Cures func(in civosim.Instance, op civosim.Op) bool
	// Machines receives what happens to the machines. If it is nil, they come up healthy.
	Machines civosim.Machines
	// Logf receives errors of the simulator. Nil drops them.
	Logf func(format string, args ...any)
}

// StartCivo starts a simulated Civo for the lab's nodes that have a providerID of Civo. The caller
// closes it.
func (l *Lab) StartCivo(ctx context.Context, o CivoOptions) (*Civo, error) {
	nodes, err := l.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing the nodes for the Civo simulator: %w", err)
	}
	var instances []civosim.Instance
	for i := range nodes.Items {
		n := &nodes.Items[i]
		if id, ok := strings.CutPrefix(n.Spec.ProviderID, "civo://"); ok {
			instances = append(instances, civosim.Instance{ID: id, Hostname: n.Name, Pool: poolOf(n)})
		}
	}
	if o.Machines == nil {
		o.Machines = l.Machines()
	}
	c := &Civo{lab: l, ClusterID: uuid.NewString(), Region: "LON1"}
	key := "civo-" + rand.Text()
	if c.KeyFile, err = l.WriteSecret("civo-api-key-"+rand.Text()[:6], key); err != nil {
		return nil, err
	}
	var rename func(civosim.Instance) string
	if o.KeepHostname {
		rename = func(old civosim.Instance) string { return old.Hostname }
	}
	c.Server, err = civosim.New(civosim.Options{
		ClusterID: c.ClusterID, Region: c.Region, APIKey: key, Instances: instances,
		Machines: o.Machines, RebootTime: o.RebootTime, DeleteTime: o.DeleteTime, BuildTime: o.BuildTime,
		Cures: o.Cures, Rename: rename, Logf: o.Logf,
	})
	return c, err
}

// Civo uses one of two labels. The pool is "" if the node has neither.
func poolOf(n *corev1.Node) string {
	if pool := n.Labels["kubernetes.civo.com/civo-node-pool"]; pool != "" {
		return pool
	}
	return n.Labels["kubernetes.civo.com/node-pool"]
}
