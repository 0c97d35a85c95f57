package lab

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// EndJob writes into the Job what its controller would: as is JobComplete or JobFailed. No lab has the controller, or a kubelet that runs
// the pods.
func (l *Lab) EndJob(ctx context.Context, namespace, name string, as batchv1.JobConditionType) error {
	jobs := l.client.BatchV1().Jobs(namespace)
	job, err := jobs.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("ending Job %s/%s: %w", namespace, name, err)
	}
	now := metav1.Now()
	job.Status.StartTime = &now
	before := batchv1.JobFailureTarget
	if as == batchv1.JobComplete {
		before = batchv1.JobSuccessCriteriaMet
		job.Status.CompletionTime, job.Status.Succeeded = &now, 1
	}
	for _, c := range []batchv1.JobConditionType{before, as} {
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{Type: c, Status: corev1.ConditionTrue, Reason: "Test", LastTransitionTime: now})
	}
	if _, err := jobs.UpdateStatus(ctx, job, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("ending Job %s/%s: %w", namespace, name, err)
	}
	return nil
}
