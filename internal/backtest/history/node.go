package history

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/prometheus/prometheus/model/labels"
)

const roleLabel = "node-role.kubernetes.io/"

// build makes a Node of what its series say. Where several kube-state-metrics disagree, the one that changed last is
// right, but of conditions the healthy one is, as in the shipped rules.
func (f *fleet) build(past *nodePast, at int64) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: past.name, Labels: map[string]string{}}}
	conditions := map[string]corev1.ConditionStatus{}
	taints := map[string]corev1.Taint{}
	first := map[string]bool{}
	for _, s := range sortedSeries(past.series) {
		of := s.labels
		once := !first[s.of.metric]
		first[s.of.metric] = true
		switch s.of.metric {
		case metricInfo:
			if once {
				setInfo(node, of)
			}
		case metricCreated:
			if once {
				node.CreationTimestamp = metav1.NewTime(seconds(s.value))
			}
		case metricDeletion:
			if once {
				when := metav1.NewTime(seconds(s.value))
				node.DeletionTimestamp = &when
			}
		case metricLabels:
			if once {
				f.setLabels(node, of)
			}
		case metricRole:
			if role := of.Get("role"); role != "" {
				node.Labels[roleLabel+role] = ""
			}
		case metricUnschedulable:
			if once {
				node.Spec.Unschedulable = s.value == 1
			}
		case metricTaint:
			taint := corev1.Taint{Key: of.Get("key"), Value: of.Get("value"), Effect: corev1.TaintEffect(of.Get("effect"))}
			taints[taint.ToString()] = taint
		case metricCondition:
			if s.value == 1 {
				kind, status := of.Get("condition"), conditionStatus(of.Get("status"))
				if was, known := conditions[kind]; !known || healthier(kind, status, was) {
					conditions[kind] = status
				}
			}
		}
	}
	node.UID = types.UID(uid(node.Name, node.CreationTimestamp.Time))
	for _, key := range sortedKeys(taints) {
		node.Spec.Taints = append(node.Spec.Taints, taints[key])
	}
	for _, kind := range sortedKeys(conditions) {
		condition := corev1.NodeCondition{
			Type: corev1.NodeConditionType(kind), Status: conditions[kind],
			LastTransitionTime: metav1.NewTime(time.UnixMilli(at).UTC()),
		}
		if past.now != nil && past.now.UID == node.UID {
			for _, was := range past.now.Status.Conditions {
				if was.Type == condition.Type && was.Status == condition.Status {
					condition.LastTransitionTime = was.LastTransitionTime
				}
			}
		}
		node.Status.Conditions = append(node.Status.Conditions, condition)
	}
	return share(past.now, node)
}

func setInfo(node *corev1.Node, of labels.Labels) {
	node.Spec.ProviderID = of.Get("provider_id")
	node.Spec.PodCIDR = of.Get("pod_cidr")
	node.Status.NodeInfo = corev1.NodeSystemInfo{
		SystemUUID: of.Get("system_uuid"), KernelVersion: of.Get("kernel_version"), OSImage: of.Get("os_image"),
		ContainerRuntimeVersion: of.Get("container_runtime_version"), KubeletVersion: of.Get("kubelet_version"),
	}
	if ip := of.Get("internal_ip"); ip != "" {
		node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: ip}}
	}
}

func (f *fleet) setLabels(node *corev1.Node, of labels.Labels) {
	of.Range(func(l labels.Label) {
		if !strings.HasPrefix(l.Name, "label_") {
			return
		}
		if name, known := f.labels[l.Name]; known {
			node.Labels[name] = l.Value
			return
		}
		f.skipUnknownLabel(l.Name)
	})
}

func conditionStatus(of string) corev1.ConditionStatus {
	switch of {
	case "true":
		return corev1.ConditionTrue
	case "false":
		return corev1.ConditionFalse
	default:
		return corev1.ConditionUnknown
	}
}

// healthier says whether a condition's status is better than another: Ready is best True, all others are best False, and
// Unknown is the worst.
func healthier(kind string, status, than corev1.ConditionStatus) bool {
	best := corev1.ConditionFalse
	if kind == string(corev1.NodeReady) {
		best = corev1.ConditionTrue
	}
	return status == best && than != best || status != corev1.ConditionUnknown && than == corev1.ConditionUnknown
}

func same(a, b *corev1.Node) bool { return a != nil && equality.Semantic.DeepEqual(a, b) }

// share makes a Node use the parts of the one before it that did not change.
func share(before, node *corev1.Node) *corev1.Node {
	if before == nil {
		return node
	}
	if equality.Semantic.DeepEqual(before.Labels, node.Labels) {
		node.Labels = before.Labels
	}
	if equality.Semantic.DeepEqual(before.Spec, node.Spec) {
		node.Spec = before.Spec
	}
	if equality.Semantic.DeepEqual(before.Status.Addresses, node.Status.Addresses) {
		node.Status.Addresses = before.Status.Addresses
	}
	return node
}
