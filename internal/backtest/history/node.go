package history

import (
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/remediations"
)

type nodePast struct {
	name        string
	shown, gone bool
	info        model.LabelSet
	created     float64
	deleted     int64 // when its deletion began, in ms; 0 if it is not being deleted
	cordoned    bool
	labels      map[string]string
	sets        map[string]map[string]model.LabelSet // roles and taints, by the metric that shows them
	conditions  map[string]corev1.NodeCondition
	now         *corev1.Node // the Node that build returned last
}

func (n *nodePast) has(metric string) map[string]model.LabelSet {
	if n.sets[metric] == nil {
		n.sets[metric] = map[string]model.LabelSet{}
	}
	return n.sets[metric]
}

func (n *nodePast) condition(kind string, status corev1.ConditionStatus, at int64) {
	if was, known := n.conditions[kind]; !known || was.Status != status {
		n.conditions[kind] = corev1.NodeCondition{
			Type: corev1.NodeConditionType(kind), Status: status, LastTransitionTime: metav1.NewTime(time.UnixMilli(at).UTC()),
		}
	}
}

func (n *nodePast) build() *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.name, UID: types.UID(n.name), Labels: map[string]string{}}}
	if n.created != 0 {
		node.CreationTimestamp = metav1.NewTime(time.Unix(int64(n.created), 0).UTC())
		node.UID = types.UID(n.name + "-" + strconv.FormatInt(int64(n.created), 10))
	}
	if n.deleted != 0 {
		node.DeletionTimestamp = &metav1.Time{Time: time.UnixMilli(n.deleted).UTC()}
	}
	for name, value := range n.labels {
		node.Labels[name] = value
	}
	for _, of := range n.has(metricRole) {
		if role := of["role"]; role != "" {
			node.Labels[remediations.RolePrefix+string(role)] = ""
		}
	}
	node.Spec = corev1.NodeSpec{ProviderID: string(n.info["provider_id"]), PodCIDR: string(n.info["pod_cidr"]), Unschedulable: n.cordoned}
	for _, key := range sortedKeys(n.has(metricTaint)) {
		of := n.has(metricTaint)[key]
		node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: string(of["key"]), Value: string(of["value"]), Effect: corev1.TaintEffect(of["effect"])})
	}
	node.Status.NodeInfo.SystemUUID = string(n.info["system_uuid"])
	if ip := n.info["internal_ip"]; ip != "" {
		node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: string(ip)}}
	}
	for _, kind := range sortedKeys(n.conditions) {
		node.Status.Conditions = append(node.Status.Conditions, n.conditions[kind])
	}
	return node
}

func conditionStatus(of string) corev1.ConditionStatus {
	switch strings.ToLower(of) {
	case "true":
		return corev1.ConditionTrue
	case "false":
		return corev1.ConditionFalse
	default:
		return corev1.ConditionUnknown
	}
}

func same(a, b *corev1.Node) bool { return a != nil && equality.Semantic.DeepEqual(a, b) }
