package cluster

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/internal/lab"
)

// AlertmanagerPod is the name, and the label app, of the Alertmanager in Drydock's namespace.
const AlertmanagerPod = "alertmanager"

// AlertmanagerInPod runs the cluster's only Alertmanager as a pod on the node, in place of the one
// beside the nodes. It keeps no data: after a restart it has no alert until Prometheus sends it. It
// posts nothing, because Drydock polls. restore undoes all of it.
func (c *Cluster) AlertmanagerInPod(ctx context.Context, node string) (restore func(context.Context) error, err error) {
	i := image{name: "drydock.dev/alertmanager:lab", program: c.options.Built[AlertmanagerPod]}
	archive, err := i.write(c.dir)
	if err != nil {
		return nil, err
	}
	for _, host := range c.Hosts.All() {
		if err := importImage(ctx, host, archive); err != nil {
			return nil, err
		}
	}
	u, err := url.Parse(c.AlertmanagerURLs()[0])
	if err != nil {
		return nil, err
	}
	manifest := strings.NewReplacer("IMAGE", i.name, "PORT", u.Port(), "NODE", node).Replace(alertmanagerManifest)
	if err := c.Apply(ctx, []byte(manifest)); err != nil {
		return nil, err
	}
	if _, err := c.Run(ctx, "kubectl", "wait", "--for=condition=Available", "deployment/"+AlertmanagerPod, "--namespace="+Namespace, "--timeout=2m"); err != nil {
		return nil, err
	}
	service, err := c.client.CoreV1().Services(Namespace).Get(ctx, AlertmanagerPod, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading the Service of Alertmanager: %w", err)
	}
	c.StopAlertmanager(0)
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", u.Host)
	if err != nil {
		return nil, fmt.Errorf("taking the address of Alertmanager: %w", err)
	}
	server := &http.Server{Handler: toService(net.JoinHostPort(service.Spec.ClusterIP, u.Port())), ReadHeaderTimeout: lab.Patience}
	go func() { _ = server.Serve(listener) }() // it ends with the server
	return func(ctx context.Context) error {
		_ = server.Close()
		if err := c.StartAlertmanager(ctx, 0); err != nil {
			return err
		}
		_, err := c.Run(ctx, "kubectl", "delete", "deployment,service,configmap", AlertmanagerPod, "--namespace="+Namespace)
		return err
	}, nil
}

// toService sends each request on a connection of its own. A connection that is kept stays with the
// old pod, which runs on while only its kubelet hangs, and Prometheus would never send an alert to
// the new pod. A Prometheus that discovers pods does not use the Service either.
func toService(address string) http.Handler {
	return &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: address}) },
		Transport: &http.Transport{DisableKeepAlives: true},
	}
}

// The pod leaves a failed node after 5 s. The default is 300 s.
const alertmanagerManifest = `
apiVersion: v1
kind: ConfigMap
metadata: {name: alertmanager, namespace: drydock}
data: {alertmanager.yaml: "{route: {receiver: drydock}, receivers: [{name: drydock}]}"}
---
apiVersion: v1
kind: Service
metadata: {name: alertmanager, namespace: drydock}
spec: {selector: {app: alertmanager}, ports: [{port: PORT}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: alertmanager, namespace: drydock}
spec:
  selector: {matchLabels: {app: alertmanager}}
  template:
    metadata: {labels: {app: alertmanager}}
    spec:
      containers:
      - name: main
        image: IMAGE
        imagePullPolicy: Never
        args: [--config.file=/etc/alertmanager/alertmanager.yaml, --storage.path=/data, --cluster.listen-address=, "--web.listen-address=:PORT"]
        readinessProbe: {httpGet: {path: /-/ready, port: PORT}, periodSeconds: 1}
        volumeMounts: [{name: config, mountPath: /etc/alertmanager}, {name: data, mountPath: /data}]
        securityContext:
          allowPrivilegeEscalation: false
          runAsNonRoot: true
          runAsUser: 65532
          capabilities: {drop: [ALL]}
          seccompProfile: {type: RuntimeDefault}
      volumes: [{name: config, configMap: {name: alertmanager}}, {name: data, emptyDir: {}}]
      affinity:
        nodeAffinity:
          preferredDuringSchedulingIgnoredDuringExecution:
          - {weight: 100, preference: {matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [NODE]}]}}
      tolerations:
      - {key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 5}
      - {key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 5}
`
