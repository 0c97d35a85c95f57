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

// Arrivals writes into the ledger when the self-test's alert last arrived at this replica, and this
// replica's version. It is the only key there that every replica writes, with a PATCH of only that
// key; no post waits for it. It is a manager.Runnable.
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
	// arrivalsApart is the least time between two writes of one replica.
	arrivalsApart = 30 * time.Second
	// arrivalAgain is the wait before a failed write is tried again: there may be no ledger yet.
	arrivalAgain = 5 * time.Second
	// arrivalTimeout bounds one try.
	arrivalTimeout = 5 * time.Second
)

// NewArrivals makes Arrivals for the ledger of that name, by a Drydock of that version.
func NewArrivals(client kubernetes.Interface, namespace, name, version string, c clock.Clock, log logr.Logger) *Arrivals {
	return &Arrivals{client: client, namespace: namespace, name: name, version: version, clock: c, log: log, news: make(chan struct{}, 1)}
}

// Arrived notes that the alert arrived now. It never blocks.
func (a *Arrivals) Arrived() {
	a.mu.Lock()
	a.last = a.clock.Now()
	a.mu.Unlock()
	select {
	case a.news <- struct{}{}:
	default:
	}
}

// Last returns when the alert last arrived at this replica, durable or not; zero: never.
func (a *Arrivals) Last() time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.last
}

// NeedLeaderElection returns false: the replica that receives the post writes the arrival.
func (a *Arrivals) NeedLeaderElection() bool { return false }

// Start writes until ctx ends.
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
				a.log.Info("that the self-test's alert arrived cannot be written yet; it is tried again", "err", err.Error())
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

// write sets the one key. It does not create the ledger, because the leader does. After an earlier
// try failed, another replica may have written a later time, which stays.
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
