package sidecar

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	"drydock.dev/drydock/remediations/providers/sidecar/settings"
)

type target struct {
	pod  string
	addr netip.AddrPort
}

// readPod returns nil and an empty text if the pod does not exist, and nil and the reason if it
// cannot be read.
func (c *Client) readPod(ctx context.Context, namespace, name string) (*corev1.Pod, string) {
	if len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return nil, fmt.Sprintf("%q in namespace %q is not a valid name of a pod", clip(name), clip(namespace))
	}
	if len(c.o.Namespaces) > 0 && !slices.Contains(c.o.Namespaces, namespace) {
		return nil, fmt.Sprintf("pod %s/%s is not in a namespace of the sidecar provider %s", namespace, name, c.o.Name)
	}
	ctx, cancel := context.WithTimeout(ctx, c.apiTimeout)
	defer cancel()
	pod, err := c.o.Client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, ""
	case err != nil:
		return nil, fmt.Sprintf("reading pod %s/%s: %s", namespace, name, clip(err.Error()))
	case pod.Namespace != namespace || pod.Name != name || pod.UID == "":
		return nil, fmt.Sprintf("reading pod %s/%s: the API server answered with another object", namespace, name)
	}
	return pod, ""
}

func (c *Client) notSelected(pod *corev1.Pod) string {
	if c.o.Selector.Matches(labels.Set(pod.Labels)) {
		return ""
	}
	return fmt.Sprintf("the sidecar provider %[3]s does not select pod %[1]s/%[2]s (selector %[4]s)", pod.Namespace, pod.Name, c.o.Name, clip(c.o.Selector.String()))
}

func (c *Client) locate(pod *corev1.Pod) (target, string) {
	name := pod.Namespace + "/" + pod.Name
	if pod.Status.Phase != corev1.PodRunning {
		return target{}, fmt.Sprintf("pod %s is %s instead of Running", name, clip(string(pod.Status.Phase)))
	}
	if pod.Status.PodIP == "" {
		return target{}, fmt.Sprintf("pod %s has no address yet", name)
	}
	ip, err := netip.ParseAddr(pod.Status.PodIP)
	if err != nil || !canBePods(ip) {
		return target{}, fmt.Sprintf("the address %q of pod %s cannot be the address of a pod", clip(pod.Status.PodIP), name)
	}
	port, unknown := c.port(pod)
	if unknown != "" {
		return target{}, fmt.Sprintf("pod %s %s", name, unknown)
	}
	return target{pod: name, addr: netip.AddrPortFrom(ip, port)}, ""
}

// canBePods returns false for addresses at which another host may answer, for example a cloud's
// metadata service.
func canBePods(ip netip.Addr) bool {
	ip = ip.Unmap()
	return ip.Zone() == "" && !ip.IsUnspecified() && !ip.IsMulticast() && !ip.IsLinkLocalUnicast() && ip != netip.AddrFrom4([4]byte{255, 255, 255, 255})
}

func (c *Client) port(pod *corev1.Pod) (uint16, string) {
	if n, err := strconv.ParseUint(c.o.Port, 10, 16); err == nil {
		return uint16(n), ""
	}
	found := int32(0)
	for _, container := range running(pod) {
		for _, p := range container.Ports {
			if p.Name != c.o.Port || (p.Protocol != corev1.ProtocolTCP && p.Protocol != "") {
				continue
			}
			if found != 0 && found != p.ContainerPort {
				return 0, fmt.Sprintf("has two container ports with the name %s, %d and %d", c.o.Port, found, p.ContainerPort)
			}
			found = p.ContainerPort
		}
	}
	if found < 1 || found > 65535 {
		return 0, fmt.Sprintf("has no container port with the name %s", c.o.Port)
	}
	return uint16(found), ""
}

// running are normal containers, and init containers that are sidecars.
func running(pod *corev1.Pod) []corev1.Container {
	all := slices.Clone(pod.Spec.Containers)
	for _, init := range pod.Spec.InitContainers {
		if restarts(init) {
			all = append(all, init)
		}
	}
	return all
}

// In a SeiNode's pod, the container with the gate has a known name. In any other pod it may be each
// container that runs as long as its pod, except the one that waits for the gate. Then the latest
// start counts. The configured port does not identify the container, because it may be the port of
// a proxy.
func (c *Client) startedAt(pod *corev1.Pod) time.Time {
	names := map[string]bool{}
	for _, container := range running(pod) {
		names[container.Name] = container.Name != seidContainer
	}
	if c.o.Owner == settings.OwnerSeiNode && names[gateContainer] {
		// If the start of another container counted, a gate that a person has closed would look as
		// if a restart had closed it.
		names = map[string]bool{gateContainer: true}
	}
	var last time.Time
	for _, s := range slices.Concat(pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses) {
		if names[s.Name] && s.State.Running != nil && s.State.Running.StartedAt.After(last) {
			last = s.State.Running.StartedAt.Time
		}
	}
	return last
}

// Kubernetes calls such an init container a sidecar: it runs as long as its pod.
func restarts(c corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}
