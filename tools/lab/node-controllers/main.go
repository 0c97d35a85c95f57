// Command node-controllers runs two controllers of kube-controller-manager, with the manager's
// defaults: the one that finds nodes lost, and the one that evicts pods by a node's taints.
// Compiling these takes a fraction of the time.
package main

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/kubernetes/pkg/controller/nodelifecycle"
	"k8s.io/kubernetes/pkg/controller/tainteviction"
)

// The manager's defaults (cmd/kube-controller-manager/app/options/nodelifecyclecontroller.go).
const (
	startupGrace          = time.Minute
	evictionRate          = 0.1
	secondaryEvictionRate = 0.01
	largeCluster          = 50
	unhealthyZone         = 0.55
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "node-controllers:", err)
		os.Exit(1)
	}
}

func run() error {
	reading := flag.String("kubeconfig", "", "reads, as kube-controller-manager itself does for all its controllers")
	writing := flag.String("node-controller-kubeconfig", "", "writes, as the service account that both controllers have in it")
	health := flag.String("health-address", "", "host:port that answers /healthz once both controllers see the cluster")
	period := flag.Duration("node-monitor-period", 5*time.Second, "as kube-controller-manager has it")
	grace := flag.Duration("node-monitor-grace-period", 50*time.Second, "as kube-controller-manager has it")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()

	reader, err := client(*reading)
	if err != nil {
		return err
	}
	writer, err := client(*writing)
	if err != nil {
		return err
	}
	shared := informers.NewSharedInformerFactory(reader, 0)
	pods, nodes := shared.Core().V1().Pods(), shared.Core().V1().Nodes()
	lifecycle, err := nodelifecycle.NewNodeLifecycleController(ctx, shared.Coordination().V1().Leases(), pods, nodes, shared.Apps().V1().DaemonSets(), writer,
		*period, startupGrace, *grace, evictionRate, secondaryEvictionRate, largeCluster, unhealthyZone)
	if err != nil {
		return err
	}
	eviction, err := tainteviction.New(ctx, writer, pods, nodes, "taint-eviction-controller")
	if err != nil {
		return err
	}
	shared.Start(ctx.Done())
	shared.WaitForCacheSync(ctx.Done())
	var both sync.WaitGroup
	both.Go(func() { lifecycle.Run(ctx) })
	both.Go(func() { eviction.Run(ctx) })
	http.HandleFunc("/healthz", func(http.ResponseWriter, *http.Request) {})
	server := &http.Server{Addr: *health, ReadHeaderTimeout: time.Second}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	err = server.ListenAndServe()
	if ctx.Err() != nil {
		both.Wait()
		return nil
	}
	return err
}

func client(kubeconfig string) (*kubernetes.Clientset, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1 // the API server has its own fairness
	return kubernetes.NewForConfig(config)
}
