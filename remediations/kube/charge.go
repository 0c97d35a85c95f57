package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/intake"
)

const (
	// Each replica reads the cluster's Lease every chargeRenewed, and the leader renews it then.
	// chargeAgain is the wait after a failed request, chargeWithin the timeout of one.
	chargeRenewed = 10 * time.Second
	chargeAgain   = 2 * time.Second
	chargeWithin  = 5 * time.Second
	// The smallest value of Charge.Good.
	chargeGood = 40 * time.Second
	// How much longer than the Lease's duration another installation waits before it takes the
	// Lease. In this time the holder may still make a call whose intent is already written.
	chargeMargin = 30 * time.Second
)

// Charge decides whether this installation of Drydock is in charge of the cluster: only the holder
// of the cluster's Lease changes anything. All replicas of an installation have the same identity,
// so a new leader need not wait. Another installation takes the Lease only when it has not seen it
// change, by its own clock, for the holder's duration and a margin. Charge is a manager.Runnable of
// every replica.
type Charge struct {
	Client kubernetes.Interface
	Lease  types.NamespacedName
	// Identity names the installation: namespace and name of the Lease of its leader election.
	Identity string
	// How long this installation trusts the Lease after its last renewal or reading, at least
	// chargeGood.
	Good time.Duration
	// Closed once this replica leads.
	Elected <-chan struct{}
	// Called when this installation becomes in charge, and when it no longer is. It must not block.
	Changed func()
	Clock   clock.Clock
	Log     logr.Logger

	mu sync.Mutex
	// When the last request began that showed this installation as the holder: a renewal by the
	// leader, or a read by another replica. Zero if none has, or if the last one showed another
	// holder.
	held time.Time
	why  string
	// The last check found another installation in charge.
	another bool
	// The UID and resourceVersion of another installation's Lease, and when this replica first read
	// that version.
	seen      string
	seenSince time.Time
	was       bool
	logged    string
}

// NeedLeaderElection returns false, because every replica writes alerts on Nodes.
func (c *Charge) NeedLeaderElection() bool { return false }

// Lacking returns why this installation is not in charge of the cluster, or "" if it is.
func (c *Charge) Lacking() string {
	why, _ := c.Lacks()
	return why
}

// Lacks returns why this installation is not in charge of the cluster, or "" if it is, and whether
// another one is. If neither is in charge, this one may still take the Lease, for example soon
// after its start.
func (c *Charge) Lacks() (why string, another bool) {
	now := c.Clock.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	// The monotonic clock and the wall clock must both show that the renewal is recent: the
	// monotonic clock does not count the time during which the machine was suspended.
	if !c.held.IsZero() && now.Sub(c.held) < c.good() && now.Round(0).Sub(c.held.Round(0)) < c.good() {
		return "", false
	}
	return cmp.Or(c.why, "Lease "+c.Lease.String()+" has not been read yet"), c.another
}

func (c *Charge) good() time.Duration { return max(c.Good, chargeGood) }

// Guarding returns a writer that calls write only while this installation is in charge. At other
// times it returns engine.ErrNotInCharge.
func (c *Charge) Guarding(write intake.AnnotationWriter) intake.AnnotationWriter {
	return func(ctx context.Context, name string, uid types.UID, annotations map[string]*string) error {
		if c.Lacking() != "" {
			return engine.ErrNotInCharge
		}
		return write(ctx, name, uid, annotations)
	}
}

// While returns a function that calls do only while this installation is in charge.
func (c *Charge) While(do func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		if c.Lacking() != "" {
			return nil
		}
		return do(ctx)
	}
}

// Start calls Look again and again until ctx ends. It does not release the Lease at the end: the
// next leader of this installation continues to hold it.
func (c *Charge) Start(ctx context.Context) error {
	elected := c.Elected
	for {
		wait := chargeRenewed
		if !c.Look(ctx) {
			wait = chargeAgain
		}
		timer := c.Clock.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-elected:
			elected = nil
		case <-timer.C():
		}
		timer.Stop()
	}
}

// Look reads the Lease once and, if this replica leads, takes or renews it. It returns false if a
// request failed.
func (c *Charge) Look(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, chargeWithin)
	defer cancel()
	began := c.Clock.Now()
	held, why, err := c.look(ctx, began)
	c.mu.Lock()
	c.another = errors.Is(err, errAnother)
	switch {
	case c.another:
		c.held, c.why, err = time.Time{}, text.Line(err.Error(), maxRefusalText), nil
	case err != nil:
		c.why = text.Line(err.Error(), maxRefusalText) // the last renewal still counts until Good has passed
	case held:
		c.held, c.why = began, ""
	default:
		c.held, c.why = time.Time{}, why
	}
	c.mu.Unlock()
	c.logChange()
	return err == nil
}

// logChange also calls Changed.
func (c *Charge) logChange() {
	lacking := c.Lacking()
	was, logged := c.was, c.logged
	c.was, c.logged = lacking == "", lacking
	switch {
	case lacking == "" && logged != "":
		c.Log.Info("this Drydock is in charge of the cluster", "object", c.Lease.String())
	case lacking != "" && lacking != logged:
		c.Log.Info("this Drydock is not in charge of the cluster, and changes nothing", "why", lacking)
	}
	if c.was != was && c.Changed != nil {
		c.Changed()
	}
}

var errAnother = errors.New("another Drydock is in charge of the cluster")

func (c *Charge) leads() bool {
	select {
	case <-c.Elected:
		return true
	default:
		return false
	}
}

func (c *Charge) look(ctx context.Context, now time.Time) (held bool, why string, err error) {
	leases := c.Client.CoordinationV1().Leases(c.Lease.Namespace)
	lease, err := leases.Get(ctx, c.Lease.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) && !c.leads():
		return false, fmt.Sprintf("there is no Lease %s yet; the leader of this Drydock creates it", c.Lease), nil
	case apierrors.IsNotFound(err):
		lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: c.Lease.Namespace, Name: c.Lease.Name}}
		c.hold(lease, now)
		if _, err = leases.Create(ctx, lease, metav1.CreateOptions{FieldManager: remediations.FieldManager}); err != nil {
			return false, "", fmt.Errorf("Lease %s does not exist (the chart creates it), and Drydock cannot create it: %w", c.Lease, err)
		}
		return true, "", nil
	case err != nil:
		return false, "", fmt.Errorf("reading Lease %s, which names the Drydock in charge of the cluster: %w", c.Lease, err)
	}
	holder := ptr.Deref(lease.Spec.HolderIdentity, "")
	switch {
	case holder == c.Identity && !c.leads():
		return true, "", nil
	case holder == "" && !c.leads():
		return false, fmt.Sprintf("no replica holds Lease %s yet; the leader of this Drydock takes it", c.Lease), nil
	case holder != "" && holder != c.Identity && !c.stands(lease, now):
		return false, "", fmt.Errorf("%w: %q holds Lease %s", errAnother, text.Line(holder, 100), c.Lease)
	}
	c.hold(lease, now)
	if _, err := leases.Update(ctx, lease, metav1.UpdateOptions{FieldManager: remediations.FieldManager}); err != nil {
		return false, "", fmt.Errorf("renewing Lease %s, which names the Drydock in charge of the cluster: %w", c.Lease, err)
	}
	return true, "", nil
}

// stands reports whether this leader may take another installation's Lease: it has not changed for
// long enough, by the clock of this process.
func (c *Charge) stands(lease *coordinationv1.Lease, now time.Time) bool {
	if version := string(lease.UID) + "/" + lease.ResourceVersion; version != c.seen {
		c.seen, c.seenSince = version, now
	}
	wait := max(c.good(), time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, 0))*time.Second) + chargeMargin
	return c.leads() && now.Sub(c.seenSince) >= wait
}

func (c *Charge) hold(lease *coordinationv1.Lease, now time.Time) {
	s := &lease.Spec
	if ptr.Deref(s.HolderIdentity, "") != c.Identity {
		s.HolderIdentity, s.AcquireTime = &c.Identity, &metav1.MicroTime{Time: now}
		s.LeaseTransitions = ptr.To(ptr.Deref(s.LeaseTransitions, 0) + 1)
	}
	s.LeaseDurationSeconds, s.RenewTime = ptr.To(int32(c.good()/time.Second)), &metav1.MicroTime{Time: now}
}
