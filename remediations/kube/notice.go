package kube

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
)

// Noticing returns an event handler that adds each changed Node to changes, and calls notice if the
// change could change a decision.
func Noticing(changes *Changes, notice func()) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { changes.add(o); notice() },
		DeleteFunc: func(o any) { changes.add(o); notice() },
		UpdateFunc: func(before, after any) {
			changes.add(after)
			a, okA := before.(*corev1.Node)
			b, okB := after.(*corev1.Node)
			if okA && okB {
				changes.compare(a, b, time.Now())
			}
			if !okA || !okB || Matters(a, b) {
				notice()
			}
		},
	}
}
