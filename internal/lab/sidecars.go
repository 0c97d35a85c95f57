package lab

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"drydock.dev/drydock/internal/lab/civosim"
	"drydock.dev/drydock/internal/lab/sidecarsim"
)

//go:embed seinode_crds.yaml
var seiNodeCRDs []byte

var (
	SeiNodes     = schema.GroupVersionResource{Group: "sei.io", Version: "v1alpha1", Resource: "seinodes"}
	SeiNodeTasks = schema.GroupVersionResource{Group: "sei.io", Version: "v1alpha1", Resource: "seinodetasks"}
)

// SeiNodeLabel is the label of a pod with the name of its SeiNode.
const SeiNodeLabel = "sei.io/node"

// Sidecars are the simulated sidecars of a lab: one for each running pod with SeiNodeLabel, on the
// pod's own address.
//
//	pod (KWOK) ──Running, podIP──▶ informer ──▶ sidecarsim on podIP:port
//	                                                │ TokenReview, SubjectAccessReview
//	                                                ▼
//	                                          kube-apiserver
type Sidecars struct {
	*sidecarsim.Server
	lab     *Lab
	dynamic dynamic.Interface
	claim   net.Listener // keeps other labs from using the same port
	token   string       // the token of Sei's controller
}

// StartSidecars adds Sei's kinds, and simulates the sidecar of each of Sei's pods. The sidecars end
// with the lab, or with Close.
func (l *Lab) StartSidecars(ctx context.Context) (*Sidecars, error) {
	s := &Sidecars{lab: l}
	var err error
	if s.dynamic, err = dynamic.NewForConfig(l.admin); err != nil {
		return nil, fmt.Errorf("making the client of Sei's kinds: %w", err)
	}
	if err := s.applyKinds(ctx); err != nil {
		return nil, err
	}
	if err := s.enlist(ctx); err != nil {
		return nil, err
	}
	if s.claim, err = claimPort(); err != nil {
		return nil, err
	}
	port := s.claim.Addr().(*net.TCPAddr).Port
	if s.Server, err = sidecarsim.New(sidecarsim.Options{Port: port, Review: l.review}); err != nil {
		return nil, err
	}
	// The watch outlives this call and ends with the lab.
	watching, end := context.WithCancel(context.WithoutCancel(ctx))
	l.mu.Lock()
	l.ends = append(l.ends, func() {
		end()
		s.Close()
	})
	l.mu.Unlock()
	if err := s.followPods(watching); err != nil {
		return nil, err
	}
	return s, s.followTasks(watching)
}

// Close ends all sidecars.
func (s *Sidecars) Close() {
	s.Server.Close()
	_ = s.claim.Close()
}

// claimPort listens on one address of this machine, so that no other lab uses the same port on the
// addresses of its pods.
func claimPort() (net.Listener, error) {
	var failed error
	for range 10 {
		port, err := FreePort()
		if err != nil {
			return nil, err
		}
		listener, err := net.Listen("tcp", address(port)) //nolint:noctx // loopback does not block
		if err == nil {
			return listener, nil
		}
		failed = err
	}
	return nil, fmt.Errorf("taking a port for the sidecars: %w", failed)
}

func (s *Sidecars) applyKinds(ctx context.Context) error {
	if err := s.lab.Apply(ctx, seiNodeCRDs); err != nil {
		return fmt.Errorf("making Sei's kinds known: %w", err)
	}
	for _, resource := range []schema.GroupVersionResource{SeiNodes, SeiNodeTasks} {
		if err := s.lab.awaitKind(ctx, resource); err != nil {
			return err
		}
	}
	return nil
}

func (l *Lab) review(ctx context.Context, token string, a sidecarsim.Access) (string, sidecarsim.Verdict, error) {
	who, err := l.client.AuthenticationV1().TokenReviews().Create(ctx, &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token},
	}, metav1.CreateOptions{})
	if err != nil {
		return "", sidecarsim.Unknown, fmt.Errorf("reviewing a token: %w", err)
	}
	if !who.Status.Authenticated {
		return "", sidecarsim.Unknown, nil
	}
	user := who.Status.User
	may, err := l.client.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User: user.Username, UID: user.UID, Groups: user.Groups,
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Group: SeiNodeTasks.Group, Resource: SeiNodeTasks.Resource, Namespace: a.Namespace, Name: a.SeiNode, Verb: a.Verb,
			},
		},
	}, metav1.CreateOptions{})
	switch {
	case err != nil:
		return user.Username, sidecarsim.Unknown, fmt.Errorf("reviewing the access of %s: %w", user.Username, err)
	case !may.Status.Allowed:
		return user.Username, sidecarsim.Denied, nil
	}
	return user.Username, sidecarsim.Allowed, nil
}

func (s *Sidecars) followPods(ctx context.Context) error {
	factory := informers.NewSharedInformerFactoryWithOptions(s.lab.client, 0,
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = SeiNodeLabel }))
	pods := factory.Core().V1().Pods().Informer()
	run := func(object any) {
		if pod, ok := object.(*corev1.Pod); ok && pod.Status.Phase == corev1.PodRunning && pod.Status.PodIP != "" {
			if err := s.Run(simulated(pod)); err != nil {
				s.lab.say("%v", err)
			}
		}
	}
	_, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    run,
		UpdateFunc: func(_, now any) { run(now) },
		DeleteFunc: func(object any) {
			if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = last.Obj
			}
			if pod, ok := object.(*corev1.Pod); ok {
				s.End(simulated(pod))
			}
		},
	})
	if err != nil {
		return fmt.Errorf("watching the pods of Sei: %w", err)
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), pods.HasSynced) {
		return errors.New("watching the pods of Sei: the lab has been stopped")
	}
	return nil
}

func simulated(pod *corev1.Pod) sidecarsim.Pod {
	p := sidecarsim.Pod{
		Namespace: pod.Namespace, Name: pod.Name, UID: string(pod.UID), Node: pod.Spec.NodeName, IP: pod.Status.PodIP,
		SeiNode: pod.Labels[SeiNodeLabel], NoProxy: true,
	}
	for _, c := range pod.Spec.Containers {
		if c.Name == proxyContainer {
			p.NoProxy = false
		}
	}
	return p
}

// Machines returns the lab's machines, with sidecars that a reboot restarts.
func (s *Sidecars) Machines() civosim.Machines { return rebooting{s.lab.Machines(), s} }

type rebooting struct {
	civosim.Machines
	sidecars *Sidecars
}

func (r rebooting) Reboot(ctx context.Context, in civosim.Instance, bootID string, cured bool) error {
	r.sidecars.RestartOn(in.Hostname)
	return r.Machines.Reboot(ctx, in, bootID, cured)
}

// SeiNode reads a SeiNode.
func (s *Sidecars) SeiNode(ctx context.Context, namespace, name string) (*unstructured.Unstructured, error) {
	return s.dynamic.Resource(SeiNodes).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
}
