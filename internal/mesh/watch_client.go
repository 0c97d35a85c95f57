package mesh

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// newInformers makes its own client for two types: the agent runs on every node, and a whole
// clientset would be larger than the rest of the agent.
func newInformers(o WatchOptions) (nodes, slices cache.SharedIndexInformer, err error) {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, discoveryv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, nil, fmt.Errorf("making the API server's client: %w", err)
		}
	}
	of := func(gv schema.GroupVersion, path, resource, namespace string, object runtime.Object, trim cache.TransformFunc, tweak func(*metav1.ListOptions)) (cache.SharedIndexInformer, error) {
		c := rest.CopyConfig(o.Config)
		c.GroupVersion, c.APIPath = &gv, path
		c.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
		c.ContentType, c.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON
		client, err := rest.RESTClientFor(c)
		if err != nil {
			return nil, fmt.Errorf("creating the client of the API server for %s: %w", resource, err)
		}
		informer := cache.NewSharedIndexInformer(cache.NewFilteredListWatchFromClient(client, resource, namespace, tweak), object, 0, cache.Indexers{})
		if err := informer.SetTransform(trim); err != nil {
			return nil, fmt.Errorf("watching %s: %w", resource, err)
		}
		return informer, nil
	}
	nodes, err = of(corev1.SchemeGroupVersion, "/api", "nodes", metav1.NamespaceAll, &corev1.Node{}, trimNode(o.TopologyLabel), func(*metav1.ListOptions) {})
	if err != nil {
		return nil, nil, err
	}
	slices, err = of(discoveryv1.SchemeGroupVersion, "/apis", "endpointslices", o.Namespace, &discoveryv1.EndpointSlice{}, trimSlice, func(l *metav1.ListOptions) {
		l.LabelSelector = labels.Set{discoveryv1.LabelServiceName: o.Service}.String()
	})
	return nodes, slices, err
}

// trimNode saves memory: a real Node has tens of kilobytes, and Kilo's rule reads few fields.
func trimNode(topologyLabel string) cache.TransformFunc {
	return func(o any) (any, error) {
		n, ok := o.(*corev1.Node)
		if !ok {
			return o, nil
		}
		t := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: n.Name, UID: n.UID, ResourceVersion: n.ResourceVersion, Annotations: map[string]string{}},
			Spec:       corev1.NodeSpec{PodCIDR: n.Spec.PodCIDR},
		}
		if location, ok := n.Labels[topologyLabel]; ok {
			t.Labels = map[string]string{topologyLabel: location}
		}
		for k, v := range n.Annotations {
			if strings.HasPrefix(k, "kilo.squat.ai/") {
				t.Annotations[k] = v
			}
		}
		return t, nil
	}
}

func trimSlice(o any) (any, error) {
	if s, ok := o.(*discoveryv1.EndpointSlice); ok {
		s.ManagedFields = nil
	}
	return o, nil
}
