package crash

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
)

// moment is before or after a call takes effect.
type moment string

const (
	before moment = "before" // it has not taken effect
	after  moment = "after"  // it has, and the caller does not know
)

// call is one request of a Drydock to the API server or to the provider.
type call struct {
	from *replica // nil in calls to the provider, which does not know the replica
	// name describes what the call changes. It is empty if the call does not count.
	name string
	// first is the name without the number of its repetition.
	first string
	// what is the changed object: a Node's name or "ledger". It is empty for other objects.
	what    string
	request *http.Request
	answer  *http.Response // only after the call
	lease   *coordinationv1.Lease
}

// hook sees every call, before and after it takes effect, and decides what happens to it.
type hook func(c *call, when moment) lab.Verdict

// kind returns a call's first name without numbers. So the same write for another attempt has the
// same kind.
func (c *call) kind() string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, c.first)
}

// describe returns a name for a request to the API server that says what it changes. Two kinds of
// writes have no name, because no repair depends on them. One is Events, which are sent later and
// from other goroutines. The other is renewals of the leader's Lease and of the cluster's Lease,
// which happen by the clock (TestLeadersAreKilled tests that a leader may be lost at any time). A
// dry run has no name either, because it writes nothing.
func (y *yard) describe(r *http.Request, body []byte) *call {
	c := &call{request: r}
	path := r.URL.Path
	node, isNode := strings.CutPrefix(path, "/api/v1/nodes/")
	switch {
	case r.Method == http.MethodGet || strings.Contains(path, "/events"), r.URL.Query().Has("dryRun"), strings.HasSuffix(path, "/leases/drydock-cluster"):
	case strings.Contains(path, "/leases"):
		if o, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil); err == nil {
			c.lease, _ = o.(*coordinationv1.Lease)
		}
		if r.Method == http.MethodPost {
			c.name = "Lease CREATE"
		}
	case strings.Contains(path, "/configmaps"):
		verb := map[string]string{http.MethodPost: "CREATE", http.MethodPut: "UPDATE"}[r.Method]
		c.what, c.name = "ledger", "ledger "+verb+" "+y.describeLedger(body)
	case isNode && r.Method == http.MethodPatch:
		c.what, c.name = node, y.short(node)+" PATCH "+describePatch(body)
	default:
		c.name = r.Method + " " + path
	}
	return c
}

// short returns the node's name without its yard's prefix. It is the same in every run.
func (y *yard) short(node string) string { return strings.TrimPrefix(node, y.name+"-") }

func (y *yard) describeLedger(body []byte) string {
	o, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	cm, ok := o.(*corev1.ConfigMap)
	if err != nil || !ok {
		return fmt.Sprintf("unreadable: %v", err)
	}
	l, err := ledger.Decode(cm.Data)
	if err != nil {
		return "unreadable: " + err.Error()
	}
	begun := 0
	for _, of := range l.Repairs {
		begun += len(of)
	}
	words := []string{fmt.Sprintf("repairs=%d slots=%d", begun, len(l.Slots))}
	for _, s := range l.Slots {
		words = append(words, y.short(s.Node)+" attempt "+attemptOf(s.Attempt))
	}
	if l.Status.Blind != "" {
		words = append(words, "blind")
	}
	for _, reason := range slices.Sorted(maps.Keys(l.Status.Holds)) {
		words = append(words, "held "+string(reason))
	}
	return strings.Join(words, " ")
}

// attemptOf returns the attempt's number from an intent's ID. The ID is repair-step-attempt. It has
// a fourth part if the attempt was given back and is made again.
func attemptOf(intent string) string { return strings.Split(intent, "-")[2] }

func describePatch(body []byte) string {
	var p struct {
		Metadata struct {
			Annotations map[string]*string `json:"annotations"`
		} `json:"metadata"`
		Spec struct {
			Unschedulable *bool `json:"unschedulable"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(body, &p); err != nil {
		return "unreadable: " + err.Error()
	}
	var words []string
	for _, key := range slices.Sorted(maps.Keys(p.Metadata.Annotations)) {
		words = append(words, describeAnnotation(key, p.Metadata.Annotations[key]))
	}
	if p.Spec.Unschedulable != nil {
		words = append(words, map[bool]string{true: "cordon", false: "uncordon"}[*p.Spec.Unschedulable])
	}
	return strings.Join(words, ", ")
}

func describeAnnotation(key string, value *string) string {
	switch {
	case strings.HasPrefix(key, remediations.AlertPrefix):
		if value == nil {
			return "alert dropped"
		}
		a, err := remediations.DecodeAlert(key, *value)
		if err != nil {
			return err.Error()
		}
		return "alert " + a.Status
	case key == remediations.NodeRepairKey:
		if value == nil {
			return "record dropped"
		}
		return describeRecord(*value)
	case key == remediations.HistoryKey && value != nil:
		return "history " + string(remediations.DecodeHistory(*value)[0].Outcome)
	case value == nil:
		return key + " dropped"
	}
	return key
}

func describeRecord(value string) string {
	r, err := remediations.DecodeRecord(value)
	if err != nil {
		return err.Error()
	}
	words := []string{string(r.Phase), r.Step.String()}
	if r.Phase == remediations.PhaseVerifying {
		words = append(words, string(r.Intent.Outcome))
	}
	if r.Hold != nil {
		words = append(words, "held "+string(r.Hold.Reason))
	}
	return strings.Join(words, " ")
}
