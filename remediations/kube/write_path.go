package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/intake"
)

const (
	// dryRunSoon is the wait if the API server refused the last dry run or refuses a write, and the
	// shortest between any two dry runs.
	dryRunEvery = 5 * time.Minute
	dryRunSoon  = 30 * time.Second
	// A write counts as refused only if the API server refuses it on all of these Nodes. A single
	// Node may have its own reason: its annotations are full, or a policy selects it.
	dryRunNodes  = 3
	dryRunWithin = 5 * time.Second
	// How long a Node counts as refusing writes after the last refused one.
	refusalKept = 2 * time.Minute
	// Of the API server's answer, in bytes.
	maxRefusalText = 400
	// The end of the annotation keys that only dry runs use, after Drydock's own prefixes.
	dryRunKey = "dry-run"
)

// WritePath finds out whether the API server accepts Drydock's writes on Nodes, by dry runs, which
// change nothing and still pass through every policy and webhook: at the start, with each
// self-test, soon after a refused write, and regularly. It is a manager.Runnable.
type WritePath struct {
	client kubernetes.Interface
	nodes  func(context.Context) ([]*corev1.Node, error)
	// Whether the configured policies may cordon or taint Nodes.
	cordons, taints bool
	below           func(int) int
	clock           clock.Clock
	log             logr.Logger
	doubts          chan struct{}

	mu      sync.Mutex
	denied  string
	limited []string
	refused map[string]refusedWrite
}

type refusedWrite struct {
	engine.Refusal
	last time.Time
}

// NewWritePath returns a WritePath. below must return a random number from 0 to below its argument.
func NewWritePath(client kubernetes.Interface, nodes func(context.Context) ([]*corev1.Node, error), c *remediations.Config, below func(int) int, clk clock.Clock, log logr.Logger) *WritePath {
	w := &WritePath{client: client, nodes: nodes, below: below, clock: clk, log: log, doubts: make(chan struct{}, 1), refused: map[string]refusedWrite{}}
	for _, p := range c.Policies {
		if p.Kind != remediations.KindNode || p.Mode != remediations.ModeEnforce {
			continue
		}
		w.cordons = w.cordons || p.CordonExhausted
		for _, s := range p.Plan {
			w.cordons = w.cordons || s.Name == "drain"
			of := c.Remediation(s.Name)
			w.taints = w.taints || of.Replaces || of.PowersOff
		}
	}
	return w
}

// Doubt makes Start run the next dry run soon. It never blocks.
func (w *WritePath) Doubt() {
	select {
	case w.doubts <- struct{}{}:
	default:
	}
}

// Watching returns a writer that calls write and remembers the Nodes that refuse it.
func (w *WritePath) Watching(write intake.AnnotationWriter) intake.AnnotationWriter {
	return func(ctx context.Context, name string, uid types.UID, annotations map[string]*string) error {
		err := write(ctx, name, uid, annotations)
		gone := errors.Is(err, intake.ErrGone)
		now := w.clock.Now()
		w.mu.Lock()
		defer w.mu.Unlock()
		switch was, known := w.refused[name]; {
		case err == nil, gone:
			delete(w.refused, name)
		case ctx.Err() != nil: // this process is stopping
		default:
			if !known || now.Sub(was.last) > refusalKept {
				was.Since = now
			}
			was.Why, was.last = text.Line(err.Error(), maxRefusalText), now
			w.refused[name] = was
			w.Doubt()
		}
		return err
	}
}

// Known returns the results of the dry runs so far, and the Nodes that refuse writes now.
func (w *WritePath) Known() engine.Writes {
	now := w.clock.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	out := engine.Writes{Denied: w.denied, Limited: slices.Clone(w.limited), Refused: map[string]engine.Refusal{}}
	maps.DeleteFunc(w.refused, func(_ string, r refusedWrite) bool { return now.Sub(r.last) > refusalKept })
	for node, r := range w.refused {
		out.Refused[node] = r.Refusal
	}
	return out
}

// Start makes dry runs until ctx ends.
func (w *WritePath) Start(ctx context.Context) error {
	for {
		w.Try(ctx)
		began, wait := w.clock.Now(), dryRunEvery
		if known := w.Known(); known.Denied != "" || len(known.Limited) > 0 {
			wait = dryRunSoon
		}
		if !w.rest(ctx, began, wait) {
			return nil
		}
	}
}

// rest returns false if ctx has ended.
func (w *WritePath) rest(ctx context.Context, began time.Time, wait time.Duration) bool {
	timer := w.clock.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C():
		return true
	case <-w.doubts:
	}
	soon := w.clock.NewTimer(dryRunSoon - w.clock.Since(began))
	defer soon.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-soon.C():
		return true
	}
}

// Try makes the dry runs once. If they give no result, the previous results stay.
func (w *WritePath) Try(ctx context.Context) {
	nodes, err := w.nodes(ctx)
	if err != nil || len(nodes) == 0 {
		return
	}
	some := w.some(nodes)
	why, known := w.ask(ctx, some, ownKeys)
	if !known {
		return
	}
	denied, limited := "", []string(nil)
	if why != "" {
		denied = "the API server refuses Drydock's own annotations and labels on Nodes: " + why
	} else {
		for _, extra := range []struct {
			needs bool
			what  string
			patch func(*corev1.Node) nodePatch
		}{{w.cordons, "a cordon by Drydock (spec.unschedulable)", cordoning}, {w.taints, "the taint " + remediations.OutOfServiceTaint + " by Drydock", tainting}} {
			if !extra.needs {
				continue
			}
			if why, known := w.ask(ctx, some, extra.patch); known && why != "" {
				limited = append(limited, "the API server refuses "+extra.what+": "+why)
			}
		}
	}
	w.mu.Lock()
	before, beforeLimited := w.denied, w.limited
	w.denied, w.limited = denied, limited
	w.mu.Unlock()
	switch {
	case denied != "" && before == "":
		w.log.Error(nil, "the API server refuses Drydock's writes on Nodes; no repair begins until it accepts these writes", "why", denied)
	case denied == "" && before != "":
		w.log.Info("the API server accepts Drydock's writes on Nodes again")
	}
	if len(limited) > 0 && len(beforeLimited) == 0 {
		w.log.Error(nil, "the API server refuses some of Drydock's writes on Nodes; steps that need them are held", "why", strings.Join(limited, "; "))
	}
}

func (w *WritePath) some(nodes []*corev1.Node) []*corev1.Node {
	nodes = slices.Clone(nodes)
	n := min(dryRunNodes, len(nodes))
	for i := range n {
		j := i + w.below(len(nodes)-i)
		nodes[i], nodes[j] = nodes[j], nodes[i]
	}
	return nodes[:n]
}

// ask tries one Node after the other, until the API server accepts the write. If it accepts none,
// why has its first refusal. known is false if there was no result on any Node.
func (w *WritePath) ask(ctx context.Context, nodes []*corev1.Node, patch func(*corev1.Node) nodePatch) (why string, known bool) {
	var tried []string
	for _, n := range nodes {
		err := w.dryRun(ctx, n.Name, patch(n))
		switch {
		case err == nil:
			return "", true
		case ctx.Err() != nil:
			return "", false
		case !refuses(err):
			w.log.V(1).Info("a dry run of a write on a Node gave no result", "node", n.Name, "why", text.Line(err.Error(), maxRefusalText))
		default:
			if why == "" {
				why = text.Line(err.Error(), maxRefusalText)
			}
			tried = append(tried, n.Name)
		}
	}
	if len(tried) == 0 {
		return "", false
	}
	return fmt.Sprintf("%s (dry run on %s)", why, strings.Join(tried, ", ")), true
}

func (w *WritePath) dryRun(ctx context.Context, node string, p nodePatch) error {
	ctx, cancel := context.WithTimeout(ctx, dryRunWithin)
	defer cancel()
	body, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("encoding a dry run on Node %s: %w", node, err)
	}
	_, err = w.client.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, body, metav1.PatchOptions{FieldManager: remediations.FieldManager, DryRun: []string{metav1.DryRunAll}})
	return err
}

// Some errors are not a refusal: the Node is gone or was replaced, its annotations are full, the
// API server cannot answer now, or a webhook does not support dry runs.
func refuses(err error) bool {
	var s apierrors.APIStatus
	if !errors.As(err, &s) {
		return false // the error is not an answer of the API server
	}
	switch {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err), apierrors.IsTooManyRequests(err), apierrors.IsServiceUnavailable(err),
		apierrors.IsTimeout(err), apierrors.IsServerTimeout(err), apierrors.IsUnauthorized(err), otherUID(err), Full(err):
		return false
	case s.Status().Code == http.StatusBadRequest && strings.Contains(err.Error(), "does not support dry run"):
		return false
	}
	return true
}

// Full reports whether a write was refused because the object's annotations exceed 256 KiB.
func Full(err error) bool {
	var s apierrors.APIStatus
	return apierrors.IsInvalid(err) && errors.As(err, &s) && s.Status().Details != nil &&
		slices.ContainsFunc(s.Status().Details.Causes, func(c metav1.StatusCause) bool {
			return c.Field == "metadata.annotations" && strings.Contains(c.Message, "Too long")
		})
}

// One key of each kind that only Drydock writes.
func ownKeys(n *corev1.Node) nodePatch {
	phase, value := string(remediations.PhasePending), ""
	if n.Labels[remediations.PhaseLabel] == phase {
		phase = string(remediations.PhaseVerifying)
	}
	return nodePatch{Metadata: patchMeta{
		UID:         n.UID,
		Annotations: map[string]*string{remediations.AlertPrefix + dryRunKey: &value, remediations.RepairPrefix + dryRunKey: &value},
		Labels:      map[string]*string{remediations.PhaseLabel: &phase},
	}}
}

func cordoning(n *corev1.Node) nodePatch {
	return nodePatch{Metadata: patchMeta{UID: n.UID}, Spec: map[string]any{"unschedulable": !n.Spec.Unschedulable}}
}

// A merge patch replaces all taints, so it has the Node's resourceVersion.
func tainting(n *corev1.Node) nodePatch {
	at := time.Unix(0, 0).UTC()
	return nodePatch{Metadata: patchMeta{UID: n.UID, ResourceVersion: n.ResourceVersion}, Spec: map[string]any{"taints": taintsAfter(n, engine.NodeChange{OutOfService: &at})}}
}
