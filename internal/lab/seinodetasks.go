package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	"drydock.dev/drydock/internal/lab/sidecarsim"
)

// Sei's controller posts a mark-ready to the sidecar of the task's SeiNode, and sets the task to
// Complete when the sidecar has accepted it. It does not wait until the SeiNode reaches a phase.
func (s *Sidecars) followTasks(ctx context.Context) error {
	factory := dynamicinformer.NewDynamicSharedInformerFactory(s.dynamic, 0)
	tasks := factory.ForResource(SeiNodeTasks).Informer()
	_, err := tasks.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) {
			if task, ok := object.(*unstructured.Unstructured); ok {
				// Each task has a goroutine, so that a hanging sidecar does not delay the other
				// tasks.
				go func() {
					if err := s.perform(ctx, task.DeepCopy()); err != nil {
						s.lab.say("%v", err)
					}
				}()
			}
		},
	})
	if err != nil {
		return fmt.Errorf("watching the SeiNodeTasks: %w", err)
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), tasks.HasSynced) {
		return errors.New("watching the SeiNodeTasks: the lab has been stopped")
	}
	return nil
}

func (s *Sidecars) perform(ctx context.Context, task *unstructured.Unstructured) error {
	kind, _, _ := unstructured.NestedString(task.Object, "spec", "kind")
	phase, _, _ := unstructured.NestedString(task.Object, "status", "phase")
	if kind != "MarkReady" || phase != "" {
		return nil
	}
	fail := func(err error) error {
		return fmt.Errorf("doing SeiNodeTask %s/%s: %w", task.GetNamespace(), task.GetName(), err)
	}
	name, _, _ := unstructured.NestedString(task.Object, "spec", "target", "nodeRef", "name")
	want, _, _ := unstructured.NestedString(task.Object, "spec", "target", "requirePhase")
	status := map[string]any{"phase": "Complete"}
	node, err := s.SeiNode(ctx, task.GetNamespace(), name)
	if err != nil {
		status = map[string]any{"phase": "Failed", "message": err.Error()}
	} else if is, _, _ := unstructured.NestedString(node.Object, "status", "phase"); is != want {
		status = map[string]any{"phase": "Failed", "message": fmt.Sprintf("SeiNode %s is %s, not %s", name, is, want)}
	} else if err := s.Post(ctx, task.GetNamespace()+"/"+name+"-0", sidecarsim.MarkReady); err != nil {
		status = map[string]any{"phase": "Failed", "message": err.Error()}
	}
	task.Object["status"] = status
	if _, err := s.dynamic.Resource(SeiNodeTasks).Namespace(task.GetNamespace()).UpdateStatus(ctx, task, metav1.UpdateOptions{}); err != nil {
		return fail(err)
	}
	return nil
}

// How long Sei's controller waits for a sidecar's answer. On a busy machine a healthy sidecar may
// take seconds.
const postTimeout = time.Minute

// Post posts a task to the sidecar of a pod, as Sei's controller does. The kind
// sidecarsim.MarkNotReady keeps a node from starting on purpose.
func (s *Sidecars) Post(ctx context.Context, pod, kind string) error {
	fail := func(err error) error { return fmt.Errorf("posting %s to the sidecar of pod %s: %w", kind, pod, err) }
	p, runs := s.Pod(pod)
	if !runs {
		return fail(errors.New("it does not run"))
	}
	ctx, cancel := context.WithTimeout(ctx, postTimeout)
	defer cancel()
	url := "http://" + net.JoinHostPort(p.IP, strconv.Itoa(s.Port())) + "/v0/tasks"
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(fmt.Sprintf(`{"type":%q}`, kind)))
	if err != nil {
		return fail(err)
	}
	r.Header.Set("Authorization", "Bearer "+s.token)
	r.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return fail(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusCreated {
		return fail(fmt.Errorf("it answers %s", response.Status))
	}
	return nil
}

// SeiController is the user name of Sei's controller at the API server.
const SeiController = "system:serviceaccount:sei-system:sei-controller"

func (s *Sidecars) enlist(ctx context.Context) error {
	const namespace, name = "sei-system", "sei-controller"
	roles := s.lab.client.RbacV1()
	_, err := roles.ClusterRoles().Create(ctx, &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{SeiNodeTasks.Group}, Resources: []string{SeiNodeTasks.Resource}, Verbs: []string{"create", "get"},
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("making the role of Sei's controller: %w", err)
	}
	_, err = roles.ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("binding the role of Sei's controller: %w", err)
	}
	s.token, err = s.lab.ServiceAccountToken(ctx, namespace, name)
	return err
}
