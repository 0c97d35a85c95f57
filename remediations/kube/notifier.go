package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"drydock.dev/drydock/remediations"
)

const (
	// After the repair's end. A report may be late, for example because no Alertmanager answered
	// for hours.
	reportedFor  = 24 * time.Hour
	notifyWithin = 30 * time.Second
	// In one post. The next call reports further ones.
	mostEnds    = 100
	reportedKey = "reported.json"
)

// Ended is a repair that ended on a node, from the Node's history.
type Ended struct {
	Node string
	remediations.Entry
}

// key contains the outcome, because an exhausted repair ends a second time when its node is healthy
// again.
func (e Ended) key() string { return e.ID + " " + string(e.Outcome) }

// Notifier reports ended repairs to people, from the histories on the Nodes. A ConfigMap stores
// which ones were reported, so that the next leader reports only the others.
type Notifier struct {
	Client kubernetes.Interface
	// Only the Notifier writes this ConfigMap.
	Reported types.NamespacedName
	Nodes    func(ctx context.Context) ([]*corev1.Node, error)
	// Sends the report to people. A repair may be reported twice, and this must do no harm.
	Post  func(ctx context.Context, ends []Ended) error
	Clock clock.PassiveClock
}

type reported struct {
	// When the Notifier first ran. Repairs that ended before that are not reported.
	Since time.Time `json:"since"`
	// The repairs of the last 24 hours that were reported, by Ended.key, and when each ended.
	Ends map[string]time.Time `json:"ends"`
}

// Notify reports the ended repairs that have not been reported. After an error, a later call
// reports them.
func (n Notifier) Notify(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, notifyWithin)
	defer cancel()
	now := n.Clock.Now()
	was, cm, err := n.read(ctx)
	if err != nil {
		return err
	}
	if cm == nil {
		return n.write(ctx, reported{Since: now, Ends: map[string]time.Time{}}, nil)
	}
	nodes, err := n.Nodes(ctx)
	if err != nil {
		return fmt.Errorf("reading the histories of the Nodes: %w", err)
	}
	ends := n.unreported(nodes, was, now)
	if len(ends) == 0 {
		return nil
	}
	ends = ends[:min(len(ends), mostEnds)]
	if err := n.Post(ctx, ends); err != nil {
		return fmt.Errorf("reporting %d ends of repairs: %w", len(ends), err)
	}
	maps.DeleteFunc(was.Ends, func(_ string, ended time.Time) bool { return now.Sub(ended) > reportedFor })
	for _, e := range ends {
		was.Ends[e.key()] = e.Ended
	}
	return n.write(ctx, was, cm)
}

func (n Notifier) unreported(nodes []*corev1.Node, was reported, now time.Time) (ends []Ended) {
	for _, node := range nodes {
		for _, entry := range remediations.DecodeHistory(node.Annotations[remediations.HistoryKey]) {
			e := Ended{node.Name, entry}
			if _, done := was.Ends[e.key()]; !done && e.Reported() && !e.Ended.Before(was.Since) && now.Sub(e.Ended) < reportedFor {
				ends = append(ends, e)
			}
		}
	}
	slices.SortFunc(ends, func(a, b Ended) int { return a.Ended.Compare(b.Ended) })
	return ends
}

// cm is nil if the ConfigMap does not exist.
func (n Notifier) read(ctx context.Context) (was reported, cm *corev1.ConfigMap, err error) {
	cm, err = n.Client.CoreV1().ConfigMaps(n.Reported.Namespace).Get(ctx, n.Reported.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return reported{}, nil, nil
	case err != nil:
		return reported{}, nil, fmt.Errorf("reading ConfigMap %s, which lists the reported ends of repairs: %w", n.Reported, err)
	}
	if err := json.Unmarshal([]byte(cm.Data[reportedKey]), &was); err != nil || was.Since.IsZero() {
		return reported{}, nil, fmt.Errorf("the content of ConfigMap %s is not valid, so no end of a repair is reported; delete the ConfigMap to begin again", n.Reported)
	}
	if was.Ends == nil {
		was.Ends = map[string]time.Time{}
	}
	return was, cm, nil
}

// write fails if another leader has written the ConfigMap since cm was read.
func (n Notifier) write(ctx context.Context, is reported, cm *corev1.ConfigMap) error {
	text, err := json.Marshal(is)
	if err != nil {
		return fmt.Errorf("encoding the list of reported ends: %w", err)
	}
	all, data := n.Client.CoreV1().ConfigMaps(n.Reported.Namespace), map[string]string{reportedKey: string(text)}
	if cm == nil {
		_, err = all.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: n.Reported.Namespace, Name: n.Reported.Name}, Data: data}, metav1.CreateOptions{})
	} else {
		cm.Data = data
		_, err = all.Update(ctx, cm, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("writing ConfigMap %s, which lists the reported ends of repairs: %w", n.Reported, err)
	}
	return nil
}
