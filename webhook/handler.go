package webhook

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"golang.org/x/time/rate"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/admission"
)

// handler answers the requests of one path. judge returns the decision, and the node that the
// request is about. self is Drydock's user name at the API server.
type handler struct {
	Options
	self    string
	metrics *metrics
	judge   func(*handler, context.Context, ctrladmission.Request) (node string, v admission.Decision)
	lines   *rate.Limiter // limits the log lines
	asks    asks
}

func newHandler(o Options, self string, m *metrics, judge func(*handler, context.Context, ctrladmission.Request) (string, admission.Decision)) *handler {
	return &handler{Options: o, self: self, metrics: m, judge: judge, lines: newLines(), asks: newAsks()}
}

var _ ctrladmission.Handler = &handler{}

// The audit annotation of requests that were allowed only because of break-glass. The API server
// puts the webhook's name before it: nodes.admission.drydock.dev/break-glass.
const breakGlassAudit = "break-glass"

// Handle writes nothing to the API server: any client that reaches the port can send an
// AdmissionReview with any user name. Only the API server knows the real user. A panic allows the
// request.
func (h *handler) Handle(ctx context.Context, req ctrladmission.Request) (res ctrladmission.Response) {
	began := h.Clock.Now()
	h.metrics.last.Set(float64(began.Unix()))
	if h.Asked != nil {
		h.Asked()
	}
	v := admission.Decision{Allowed: true, Reason: panicked}
	defer func() {
		if r := recover(); r != nil {
			h.say(fmt.Errorf("%v", r), "the check of a request panicked; Drydock allows the request", req.Name, req.UserInfo.Username, string(req.Operation), "")
			res = ctrladmission.Allowed("").WithWarnings("Drydock could not check this request, because of a fault of its own, and allows it")
		}
		h.metrics.total.WithLabelValues(verdictOf(v), string(v.Reason)).Inc()
		h.metrics.duration.Observe(h.Clock.Since(began).Seconds())
	}()
	node, judged := h.judge(h, ctx, req)
	v = judged
	if !v.Allowed {
		h.say(nil, "Drydock denied a request", node, req.UserInfo.Username, string(req.Operation), string(v.Reason))
		res = ctrladmission.Denied(v.Message)
		if v.Reason == admission.ReasonEviction {
			// A client that evicts pods does not try again after status 403. It tries again later
			// after status 429, which also means that a disruption budget is used up. Some
			// upgraders roll back after a 403 (github.com/Azure/AKS/issues/5637).
			res.Result.Code, res.Result.Reason = http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests
		}
		return res
	}
	res = ctrladmission.Allowed("").WithWarnings(v.Warnings...)
	if v.BreakGlass {
		// In the audit log it is next to the real user name, which only the API server knows.
		res.AuditAnnotations = map[string]string{breakGlassAudit: v.Message}
	}
	return res
}

func verdictOf(v admission.Decision) string {
	switch {
	case !v.Allowed:
		return denied
	case len(v.Warnings) > 0 && v.Reason != undecodable:
		return warned
	}
	return allowed
}

func judgeNode(h *handler, ctx context.Context, req ctrladmission.Request) (string, admission.Decision) {
	ch := h.change(req)
	var err error
	if ch.Old, err = decode(req.OldObject, req.Operation != admissionv1.Create); err == nil {
		ch.New, err = decode(req.Object, req.Operation != admissionv1.Delete)
	}
	if err != nil {
		h.say(err, "Drydock cannot read a request, and allows it", req.Name, req.UserInfo.Username, string(req.Operation), "")
		return req.Name, admission.Decision{Allowed: true, Reason: undecodable, Warnings: []string{
			fmt.Sprintf("Drydock cannot read this request, and allows it: %s", text.Line(err.Error(), mostOfAnError)),
		}}
	}
	node := req.Name
	for _, n := range []*corev1.Node{ch.Old, ch.New} {
		if n != nil {
			node = n.Name // a request that creates a Node, or deletes all Nodes at once, has no name
		}
	}
	known := h.knows(ch.Old)
	ch.May = h.may(ctx, req, node, known)
	return node, admission.Validate(h.Config, ch, h.fleetFor(ch, known), h.Clock.Now())
}

// Only clients that may read Nodes know the UID of the cached Node.
func (h *handler) knows(old *corev1.Node) bool {
	if old == nil || old.UID == "" {
		return false
	}
	n := h.Node(old.Name)
	return n != nil && n.UID == old.UID
}

// Only a request for a repair needs all Nodes, for the warning that it must wait. Other decisions
// need only the Nodes with a repair. A client that does not know the Node's UID may be a stranger,
// and gets no such warning.
func (h *handler) fleetFor(ch *admission.Change, known bool) func() []*corev1.Node {
	_, asks := annotation(ch.New, remediations.RequestKey)
	if !known || !asks {
		return h.Repairing
	}
	return h.Nodes
}

func annotation(n *corev1.Node, key string) (value string, ok bool) {
	if n == nil {
		return "", false
	}
	value, ok = n.Annotations[key]
	return value, ok
}

// The pod is read from the API server: a cache of all pods would be Drydock's largest cache, for
// its rarest request. No pod is read while no Node has a repair in flight, because every eviction
// is allowed then.
func judgeEviction(h *handler, ctx context.Context, req ctrladmission.Request) (string, admission.Decision) {
	ch := h.change(req)
	if ch.Drydock || ch.Exempt || !slices.ContainsFunc(h.Repairing(), func(n *corev1.Node) bool { return admission.InFlight(h.Config, n) }) {
		return "", admission.Decision{Allowed: true, Reason: admission.ReasonNone}
	}
	node, err := h.nodeOf(ctx, req.Namespace, req.Name)
	if err != nil {
		h.say(err, "Drydock cannot read the pod of an eviction, and allows the eviction", req.Namespace+"/"+req.Name, req.UserInfo.Username, string(req.Operation), "")
		return "", admission.Decision{Allowed: true, Reason: podUnreadable}
	}
	if ch.Old = h.Node(node); ch.Old == nil {
		return node, admission.Decision{Allowed: true, Reason: admission.ReasonNone}
	}
	return node, admission.ValidateEviction(h.Config, ch)
}

func (h *handler) change(req ctrladmission.Request) *admission.Change {
	user := req.UserInfo
	return &admission.Change{
		User: user.Username, Groups: user.Groups,
		Drydock: user.Username == h.self, Exempt: h.Exempt.Covers(user.Username, user.Groups), Driver: h.Drivers.Covers(user.Username),
	}
}

// A missing Node is an error if it is wanted. Unknown fields are accepted.
func decode(raw runtime.RawExtension, wanted bool) (*corev1.Node, error) {
	if len(raw.Raw) == 0 {
		if wanted {
			return nil, fmt.Errorf("the Node is missing")
		}
		return nil, nil
	}
	if !wanted {
		return nil, nil
	}
	n, err := readNode(raw.Raw)
	if err != nil {
		return nil, fmt.Errorf("reading a Node: %w", err)
	}
	return n, nil
}
