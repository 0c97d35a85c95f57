package lab

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

func (l *Lab) startControlPlane(ctx context.Context) error {
	admin, err := l.userConfig("admin", "system:masters")
	if err != nil {
		return err
	}
	client, err := rest.HTTPClientFor(admin)
	if err != nil {
		return fmt.Errorf("making the administrator's client: %w", err)
	}
	if l.options.APIServers != nil {
		l.api, err = l.options.APIServers(ctx, l.credentials())
	} else {
		err = l.startAPIServer(ctx, client)
	}
	if err != nil {
		return err
	}
	admin.Host = l.api
	l.admin = admin
	if l.client, err = kubernetes.NewForConfigAndClient(admin, client); err != nil {
		return fmt.Errorf("making the administrator's client: %w", err)
	}
	l.kinds = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(l.client.Discovery()))
	kubelets := l.kubeletConfig()
	kubelets.ContentType = runtime.ContentTypeProtobuf // the encoding that kubelets use
	if l.kubelet, err = kubernetes.NewForConfig(kubelets); err != nil {
		return fmt.Errorf("making the kubelets' client: %w", err)
	}
	_, err = l.writeKubeconfig("admin", admin)
	return err
}

func (l *Lab) startEtcd(ctx context.Context) (url string, err error) {
	_, ports, err := l.startOnPorts(ctx, 2, func(ports []int) Spec {
		clients, peers := "http://"+address(ports[0]), "http://"+address(ports[1])
		return Spec{Name: "etcd", ReadyURL: clients + "/readyz", Args: []string{
			"--data-dir=" + filepath.Join(l.dataDir(), "etcd"),
			"--listen-client-urls=" + clients, "--advertise-client-urls=" + clients,
			"--listen-peer-urls=" + peers, "--initial-advertise-peer-urls=" + peers,
			"--initial-cluster=default=" + peers,
			"--unsafe-no-fsync", // the data need not survive a crash of the machine
		}}
	})
	if err != nil {
		return "", err
	}
	return "http://" + address(ports[0]), nil
}

func (l *Lab) startAPIServer(ctx context.Context, client *http.Client) error {
	etcd, err := l.startEtcd(ctx)
	if err != nil {
		return err
	}
	_, ports, err := l.startOnPorts(ctx, 1, func(ports []int) Spec {
		url := "https://" + address(ports[0])
		return Spec{Name: "kube-apiserver", Path: l.programs[apiServer()], ReadyURL: url + "/readyz", ReadyClient: client, Args: append(append(APIServerArgs(l.apiServerFiles()),
			"--etcd-servers="+etcd,
			"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", ports[0]),
			// The API server must not publish an endpoint for the Service "kubernetes": a loopback
			// address is not allowed there, and nothing in a lab uses the Service.
			"--advertise-address=127.0.0.1", "--endpoint-reconciler-type=none",
		), l.options.APIServerFlags...)}
	})
	if err != nil {
		return err
	}
	l.api = "https://" + address(ports[0])
	return nil
}

func (l *Lab) startControllers(ctx context.Context) error {
	if l.options.NodeControllers {
		return l.startNodeControllers(ctx)
	}
	return l.startControllerManager(ctx)
}

// The controllers run as the users that they have within kube-controller-manager.
func (l *Lab) startNodeControllers(ctx context.Context) error {
	reading, err := l.UserKubeconfig(controllerManager)
	if err != nil {
		return err
	}
	writing, err := l.UserKubeconfig("system:serviceaccount:kube-system:node-controller")
	if err != nil {
		return err
	}
	_, _, err = l.startOnPorts(ctx, 1, func(ports []int) Spec {
		return Spec{Name: "node-controllers", ReadyURL: "http://" + address(ports[0]) + "/healthz", Args: []string{
			"--kubeconfig=" + reading, "--node-controller-kubeconfig=" + writing, "--health-address=" + address(ports[0]),
			"--node-monitor-period=1s", "--node-monitor-grace-period=" + l.options.NodeGrace.String(),
		}}
	})
	return err
}

// Each controller uses its own service account, as in most clusters, unless
// SharedControllerIdentity is set. Admission treats the two cases differently.
func (l *Lab) startControllerManager(ctx context.Context) error {
	c, err := l.userConfig(controllerManager)
	if err != nil {
		return err
	}
	kubeconfig, err := l.writeKubeconfig("kube-controller-manager", c)
	if err != nil {
		return err
	}
	client, err := rest.HTTPClientFor(l.anonymousConfig())
	if err != nil {
		return fmt.Errorf("making the client of kube-controller-manager's health: %w", err)
	}
	if l.options.SharedControllerIdentity {
		if err := l.grantController(ctx); err != nil {
			return err
		}
	}
	_, _, err = l.startOnPorts(ctx, 1, func(ports []int) Spec {
		url := "https://" + address(ports[0])
		return Spec{Name: "kube-controller-manager", ReadyURL: url + "/healthz", ReadyClient: client, Again: true, Args: []string{
			"--kubeconfig=" + kubeconfig, "--leader-elect=false",
			"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", ports[0]),
			"--tls-cert-file=" + l.serving.certFile, "--tls-private-key-file=" + l.serving.keyFile,
			fmt.Sprintf("--use-service-account-credentials=%t", !l.options.SharedControllerIdentity),
			"--service-account-private-key-file=" + filepath.Join(l.certDir(), "service-accounts.key"),
			"--root-ca-file=" + l.ca.file(),
			"--node-monitor-period=1s", "--node-monitor-grace-period=" + l.options.NodeGrace.String(),
			"--kube-api-qps=500", "--kube-api-burst=1000",
		}}
	})
	return err
}

// The user gets all rights, in place of the roles that each controller has otherwise.
func (l *Lab) grantController(ctx context.Context) error {
	_, err := l.client.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "drydock-lab-controller"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: controllerManager}},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("granting kube-controller-manager what its controllers need: %w", err)
	}
	return nil
}

const controllerManager = "system:kube-controller-manager"

// CopyEtcd stops etcd for a moment and copies its data. restore kills etcd and the API server, puts
// the old data back, and starts both.
func (l *Lab) CopyEtcd(ctx context.Context) (restore func(ctx context.Context) error, err error) {
	etcd, server, data, old := l.Process("etcd"), l.Process("kube-apiserver"), filepath.Join(l.dataDir(), "etcd"), filepath.Join(l.dataDir(), "etcd-copy")
	etcd.Kill()
	if err := os.CopyFS(old, os.DirFS(data)); err != nil {
		return nil, fmt.Errorf("copying etcd's data: %w", err)
	}
	if err := etcd.Start(ctx); err != nil {
		return nil, err
	}
	if err := server.awaitReady(ctx); err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		server.Kill()
		etcd.Kill()
		if err := os.RemoveAll(data); err != nil {
			return fmt.Errorf("removing etcd's data: %w", err)
		}
		if err := os.Rename(old, data); err != nil {
			return fmt.Errorf("putting etcd's old data back: %w", err)
		}
		if err := etcd.Start(ctx); err != nil {
			return err
		}
		return server.Start(ctx)
	}, nil
}
