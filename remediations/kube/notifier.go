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
	// toldFor is how long an end may wait to be told, for example while no Alertmanager answers.
	toldFor = 24 * time.Hour
	// notifyWithin bounds one look at the histories.
	notifyWithin = 30 * time.Second
	// mostEnds bounds one post. The others follow with the next look.
	mostEnds = 100
	// toldKey is the key of the ConfigMap.
	toldKey = "told.json"
)

// Ended is the end of a repair of a node.
type Ended struct {
	Node string
	remediations.Entry
}

// key is different for each end. A repair that was exhausted can end a second time, when the node
// is well.
func (e Ended) key() string { return e.ID + " " + string(e.Outcome) }

// Notifier tells people of the ends of repairs in the Nodes' histories. It remembers in a ConfigMap
// which ends it told, so that another leader tells the others and repeats none.
type Notifier struct {
	Client kubernetes.Interface
	// Told is the ConfigMap. Only the Notifier writes it.
	Told  types.NamespacedName
	Nodes func(ctx context.Context) ([]*corev1.Node, error)
	// Post tells people. Telling an end again must do no harm.
	Post  func(ctx context.Context, ends []Ended) error
	Clock clock.PassiveClock
}

// told is what the ConfigMap holds.
type told struct {
	// Since is when the Notifier began. What ended before is not told.
	Since time.Time `json:"since"`
	// Ends are the ends of the last 24 hours that were told, with their times.
	Ends map[string]time.Time `json:"ends"`
}

// Notify tells of the ends that were not told yet. An error means that a later call tells them.
func (n Notifier) Notify(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, notifyWithin)
	defer cancel()
	now := n.Clock.Now()
	was, cm, err := n.read(ctx)
	if err != nil {
		return err
	}
	if cm == nil {
		return n.write(ctx, told{Since: now, Ends: map[string]time.Time{}}, nil)
	}
	nodes, err := n.Nodes(ctx)
	if err != nil {
		return fmt.Errorf("reading the histories of the Nodes: %w", err)
	}
	ends := n.untold(nodes, was, now)
	if len(ends) == 0 {
		return nil
	}
	ends = ends[:min(len(ends), mostEnds)]
	if err := n.Post(ctx, ends); err != nil {
		return fmt.Errorf("telling of %d ends of repairs: %w", len(ends), err)
	}
	maps.DeleteFunc(was.Ends, func(_ string, ended time.Time) bool { return now.Sub(ended) > toldFor })
	for _, e := range ends {
		was.Ends[e.key()] = e.Ended
	}
	return n.write(ctx, was, cm)
}

// untold returns the ends that are to be told, the oldest first.
func (n Notifier) untold(nodes []*corev1.Node, was told, now time.Time) (ends []Ended) {
	for _, node := range nodes {
		for _, entry := range remediations.DecodeHistory(node.Annotations[remediations.HistoryKey]) {
			e := Ended{node.Name, entry}
			if _, done := was.Ends[e.key()]; !done && e.Told() && !e.Ended.Before(was.Since) && now.Sub(e.Ended) < toldFor {
				ends = append(ends, e)
			}
		}
	}
	slices.SortFunc(ends, func(a, b Ended) int { return a.Ended.Compare(b.Ended) })
	return ends
}

// read returns what was told, and the ConfigMap. Nil: it does not exist.
func (n Notifier) read(ctx context.Context) (was told, cm *corev1.ConfigMap, err error) {
	cm, err = n.Client.CoreV1().ConfigMaps(n.Told.Namespace).Get(ctx, n.Told.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return told{}, nil, nil
	case err != nil:
		return told{}, nil, fmt.Errorf("reading ConfigMap %s, which says which ends were told: %w", n.Told, err)
	}
	if err := json.Unmarshal([]byte(cm.Data[toldKey]), &was); err != nil || was.Since.IsZero() {
		return told{}, nil, fmt.Errorf("ConfigMap %s cannot be read, so no end of a repair is told; delete it to begin again", n.Told)
	}
	if was.Ends == nil {
		was.Ends = map[string]time.Time{}
	}
	return was, cm, nil
}

// write keeps what was told. Another leader's write in between is a conflict.
func (n Notifier) write(ctx context.Context, is told, cm *corev1.ConfigMap) error {
	text, err := json.Marshal(is)
	if err != nil {
		return fmt.Errorf("encoding which ends were told: %w", err)
	}
	all, data := n.Client.CoreV1().ConfigMaps(n.Told.Namespace), map[string]string{toldKey: string(text)}
	if cm == nil {
		_, err = all.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: n.Told.Namespace, Name: n.Told.Name}, Data: data}, metav1.CreateOptions{})
	} else {
		cm.Data = data
		_, err = all.Update(ctx, cm, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("writing ConfigMap %s, which says which ends were told: %w", n.Told, err)
	}
	return nil
}
