package kube

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
)

// Noticing tells of each change of a Node that could change a decision.
func Noticing(notice func()) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { notice() },
		DeleteFunc: func(any) { notice() },
		UpdateFunc: func(before, after any) {
			a, okA := before.(*corev1.Node)
			b, okB := after.(*corev1.Node)
			if !okA || !okB || Matters(a, b) {
				notice()
			}
		},
	}
}
