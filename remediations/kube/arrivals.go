package kube

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
)

// Arrivals stores in the ledger when the self-test's alert last arrived at this replica, which
// shows that Alertmanager reaches Drydock. Each PATCH changes only this key and an annotation with
// the version. The handler of the alert does not wait for the write. Arrivals is a
// manager.Runnable.
type Arrivals struct {
	client          kubernetes.Interface
	namespace, name string
	version         string
	clock           clock.Clock
	log             logr.Logger
	news            chan struct{}

	mu   sync.Mutex
	last time.Time
}

const (
	// The shortest time between two writes of one replica.
	arrivalsApart = 30 * time.Second
	// A write fails, for example, while there is no ledger yet.
	arrivalAgain   = 5 * time.Second
	arrivalTimeout = 5 * time.Second
)

// NewArrivals returns the Arrivals for this ledger. version is this Drydock's.
func NewArrivals(client kubernetes.Interface, namespace, name, version string, c clock.Clock, log logr.Logger) *Arrivals {
	return &Arrivals{client: client, namespace: namespace, name: name, version: version, clock: c, log: log, news: make(chan struct{}, 1)}
}

// Arrived records that the self-test's alert arrives now. It never blocks.
func (a *Arrivals) Arrived() {
	a.mu.Lock()
	a.last = a.clock.Now()
	a.mu.Unlock()
	select {
	case a.news <- struct{}{}:
	default:
	}
}

// Last returns when the self-test's alert last arrived at this replica, written or not. Zero means
// never.
func (a *Arrivals) Last() time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.last
}

// NeedLeaderElection returns false, because Alertmanager may post to any replica.
func (a *Arrivals) NeedLeaderElection() bool { return false }

// Start writes arrivals until ctx ends.
func (a *Arrivals) Start(ctx context.Context) error {
	var written time.Time
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-a.news:
		}
		for again := false; ; again = true {
			at := a.Last()
			err := a.write(ctx, at, again)
			if err == nil {
				written = a.clock.Now()
				break
			}
			if !again {
				a.log.Info("the arrival of the self-test's alert cannot be written into the ledger yet; Drydock tries again", "err", err.Error())
			}
			if !a.wait(ctx, arrivalAgain) {
				return nil
			}
		}
		if !a.wait(ctx, arrivalsApart-a.clock.Since(written)) {
			return nil
		}
	}
}

func (a *Arrivals) wait(ctx context.Context, d time.Duration) bool {
	timer := a.clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C():
		return true
	}
}

// write does not create the ledger, because only the leader does that. again is true if an earlier
// attempt failed: another replica may have stored a later time meanwhile, which then stays.
func (a *Arrivals) write(ctx context.Context, at time.Time, again bool) error {
	ctx, cancel := context.WithTimeout(ctx, arrivalTimeout)
	defer cancel()
	maps, where := a.client.CoreV1().ConfigMaps(a.namespace), "ConfigMap "+a.namespace+"/"+a.name
	if again {
		cm, err := maps.Get(ctx, a.name, metav1.GetOptions{})
		if err != nil {
			return translate("reading "+where, err)
		}
		if there, err := ledger.DecodeArrival(cm.Data); err == nil && !there.Before(at.Truncate(time.Second)) && there.Before(a.clock.Now().Add(arrivalsApart)) {
			return nil
		}
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{remediations.VersionKey: a.version}}, "data": map[string]string{ledger.KeyArrival: ledger.EncodeArrival(at)}})
	if err != nil {
		return err
	}
	if _, err := maps.Patch(ctx, a.name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: remediations.FieldManager}); err != nil {
		return translate("writing the last arrival into "+where, err)
	}
	return nil
}
