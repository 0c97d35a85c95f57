package lab

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"

	"github.com/google/uuid"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/remediations/providers/redfish/sim"
)

// BMCOptions define how the BMC of a node behaves.
type BMCOptions struct {
	// Vendor is the BMC's vendor. Empty means Redfish without deviations.
	Vendor sim.Vendor
	// Hangs makes the operating system ignore requests, for example for a graceful restart.
	Hangs bool
	// Ill makes the machine come up with the same fault after a reset.
	Ill bool
	// Back delays the machine after a reset until the channel is closed. Nil means no delay.
	Back <-chan struct{}
	// Reset handles each reset request, and may call next to carry it out. Nil carries out all.
	Reset func(w http.ResponseWriter, r *http.Request, next http.Handler)
}

// BMC is the simulated BMC of one of the lab's nodes. After a reset, the machine comes up with a
// new boot ID and, unless Ill is set, without its fault.
type BMC struct {
	*sim.BMC
	Config map[string]any

	node   string
	lab    *Lab
	server *http.Server
	ctx    context.Context
	end    context.CancelFunc
	boots  sync.WaitGroup
}

// StartBMC simulates the BMC of a node. The caller closes it.
func (l *Lab) StartBMC(ctx context.Context, node string, o BMCOptions) (*BMC, error) {
	n, err := l.client.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("starting the BMC of node %s: %w", node, err)
	}
	if o.Vendor == "" {
		o.Vendor = sim.Standard
	}
	cert, err := sim.SelfSigned()
	if err != nil {
		return nil, fmt.Errorf("making the certificate of the BMC of node %s: %w", node, err)
	}
	user, password, id := "user-"+rand.Text(), "password-"+rand.Text(), rand.Text()[:6]
	userFile, err := l.WriteSecret("bmc-username-"+id, user)
	if err != nil {
		return nil, err
	}
	passwordFile, err := l.WriteSecret("bmc-password-"+id, password)
	if err != nil {
		return nil, err
	}
	b := &BMC{node: node, lab: l}
	b.ctx, b.end = context.WithCancel(context.Background())
	b.BMC = sim.New(sim.Options{
		Vendor: o.Vendor, Username: user, Password: password, Systems: []sim.System{{UUID: n.Status.NodeInfo.SystemUUID, Serial: node}},
		Reset: func(_ sim.System, kind string) { b.reset(kind, o) },
	})
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("starting the BMC of node %s: %w", node, err)
	}
	b.server = &http.Server{TLSConfig: cert.TLS(), ErrorLog: log.New(io.Discard, "", 0), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if o.Reset != nil && strings.HasSuffix(r.URL.Path, "/Actions/ComputerSystem.Reset") {
			o.Reset(w, r, b.BMC)
			return
		}
		b.ServeHTTP(w, r)
	})}
	go func() { _ = b.server.ServeTLS(listener, "", "") }()
	b.Config = map[string]any{
		"node": node, "url": "https://" + listener.Addr().String(), "fingerprint": cert.Fingerprint(),
		"usernameFile": userFile, "passwordFile": passwordFile,
	}
	return b, nil
}

func (b *BMC) reset(kind string, o BMCOptions) {
	if o.Hangs && strings.HasPrefix(kind, "Graceful") {
		return
	}
	b.lab.Off(b.node)
	b.boots.Go(func() {
		if o.Back != nil {
			select {
			case <-o.Back:
			case <-b.ctx.Done():
			}
		}
		ctx := context.WithoutCancel(b.ctx)
		if err := b.lab.On(ctx, b.node, uuid.NewString(), !o.Ill); err != nil {
			b.lab.say("the machine of node %s does not come up: %v", b.node, err)
		}
	})
}

// Close ends the BMC. A machine that is still down comes up.
func (b *BMC) Close() {
	b.end()
	_ = b.server.Close()
	b.boots.Wait()
}
