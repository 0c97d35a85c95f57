package programs

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Lab are the names of the programs that a whole lab and its tests use.
var Lab = []string{
	"etcd", "kube-apiserver", "kube-controller-manager", "node-controllers", "kubectl", "kwok",
	"kube-state-metrics", "prometheus", "alertmanager", "amtool", "blackbox_exporter",
}

// Demo are the names of the programs that test/demo uses.
var Demo = []string{
	"etcd", "kube-apiserver", "node-controllers",
	"kube-state-metrics", "prometheus", "alertmanager", "amtool",
}

// Cluster are the names of the programs of a cluster with real kubelets.
var Cluster = []string{
	"etcd", "kube-apiserver", "kube-controller-manager", "kubectl", "kube-state-metrics", "prometheus", "alertmanager",
	"kubelet", "kube-scheduler", "kube-proxy", "containerd", "containerd-shim-runc-v2", "ctr", "nodeproblemdetector", "kube-router", "helm",
}

// Check are the names of the programs that test, lint and check the repository.
var Check = []string{"gotestsum", "golangci-lint", "promtool", "helm", "helm-docs"}

type program struct {
	tool   string // the folder under tools/ whose go.mod pins it
	module string // the module whose version the program has
	pkg    string // the main package, relative to the module
	ours   bool   // the main package is not in the module: it is in the tool's folder, in a folder with the program's name, and uses packages of the module
	tags   string
	stamp  func(version string) map[string]string
}

// Compiling Prometheus' discovery plugins takes minutes, so all but Kubernetes' are excluded. All
// programs of tools/lab use these tags, so that one go command can build them.
const labTags = "remove_all_sd,enable_kubernetes_sd"

// No host of the lab uses these snapshotters. The one for btrfs also needs C headers.
const containerdTags = "no_btrfs,no_devmapper,no_zfs"

// Without the exporter of metrics to Google, and the monitor of system metrics.
const detectorTags = "disable_stackdriver_exporter,disable_system_stats_monitor"

var all = map[string]program{
	"etcd":                    {tool: "lab", tags: labTags, module: "go.etcd.io/etcd/server/v3"},
	"kube-apiserver":          {tool: "lab", tags: labTags, module: "k8s.io/kubernetes", pkg: "cmd/kube-apiserver", stamp: kubernetesVersion},
	"kube-apiserver-1.30":     {tool: "kubernetes-1.30", module: "k8s.io/kubernetes", pkg: "cmd/kube-apiserver", stamp: kubernetesVersion},
	"kube-controller-manager": {tool: "lab", tags: labTags, module: "k8s.io/kubernetes", pkg: "cmd/kube-controller-manager", stamp: kubernetesVersion},
	"node-controllers":        {tool: "lab", tags: labTags, module: "k8s.io/kubernetes", ours: true},
	"kube-scheduler":          {tool: "lab", tags: labTags, module: "k8s.io/kubernetes", pkg: "cmd/kube-scheduler", stamp: kubernetesVersion},
	"kube-proxy":              {tool: "lab", tags: labTags, module: "k8s.io/kubernetes", pkg: "cmd/kube-proxy", stamp: kubernetesVersion},
	"kubelet":                 {tool: "lab", tags: labTags, module: "k8s.io/kubernetes", pkg: "cmd/kubelet", stamp: kubernetesVersion},
	"containerd":              {tool: "containerd", tags: containerdTags, module: "github.com/containerd/containerd/v2", pkg: "cmd/containerd"},
	"containerd-shim-runc-v2": {tool: "containerd", tags: containerdTags, module: "github.com/containerd/containerd/v2", pkg: "cmd/containerd-shim-runc-v2"},
	"ctr":                     {tool: "containerd", tags: containerdTags, module: "github.com/containerd/containerd/v2", pkg: "cmd/ctr"},
	"kubectl":                 {tool: "lab", tags: labTags, module: "k8s.io/kubernetes", pkg: "cmd/kubectl", stamp: kubernetesVersion},
	"kwok":                    {tool: "lab", tags: labTags, module: "sigs.k8s.io/kwok", pkg: "cmd/kwok"},
	"kube-state-metrics":      {tool: "lab", tags: labTags, module: "k8s.io/kube-state-metrics/v2"},
	"prometheus":              {tool: "lab", tags: labTags, module: "github.com/prometheus/prometheus", pkg: "cmd/prometheus"},
	"promtool":                {tool: "lab", tags: labTags, module: "github.com/prometheus/prometheus", pkg: "cmd/promtool"},
	"alertmanager":            {tool: "lab", tags: labTags, module: "github.com/prometheus/alertmanager", pkg: "cmd/alertmanager"},
	"amtool":                  {tool: "lab", tags: labTags, module: "github.com/prometheus/alertmanager", pkg: "cmd/amtool"},
	"helm":                    {tool: "helm", module: "helm.sh/helm/v4", pkg: "cmd/helm"},
	"helm-docs":               {tool: "helm-docs", module: "github.com/norwoodj/helm-docs", pkg: "cmd/helm-docs"},
	"blackbox_exporter":       {tool: "blackbox", module: "github.com/prometheus/blackbox_exporter"},
	"cluster-api":             {tool: "cluster-api", module: "sigs.k8s.io/cluster-api", pkg: "core"},
	"kube-router":             {tool: "kube-router", module: "github.com/cloudnativelabs/kube-router/v2", pkg: "cmd/kube-router"},
	"kured":                   {tool: "kured", module: "github.com/kubereboot/kured", pkg: "cmd/kured"},
	"nodeproblemdetector":     {tool: "node-problem-detector", tags: detectorTags, module: "k8s.io/node-problem-detector", pkg: "cmd/nodeproblemdetector"},
	"controller-gen":          {tool: "metal3", module: "sigs.k8s.io/controller-tools", pkg: "cmd/controller-gen"},
	"karpenter":               {tool: "karpenter", module: "sigs.k8s.io/karpenter", pkg: "kwok"},
	"victoria-metrics":        {tool: "victoriametrics", module: "github.com/VictoriaMetrics/VictoriaMetrics", pkg: "app/victoria-metrics"},
	"gotestsum":               {tool: "gotestsum", module: "gotest.tools/gotestsum"},
	"golangci-lint":           {tool: "golangci-lint", module: "github.com/golangci/golangci-lint/v2", pkg: "cmd/golangci-lint"},
}

// The API server reports this version. Without it, kubectl and Helm cannot parse the version.
func kubernetesVersion(version string) map[string]string {
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	const p = "k8s.io/component-base/version."
	return map[string]string{p + "gitVersion": version, p + "gitMajor": parts[0], p + "gitMinor": parts[1]}
}

// Names returns the names of all programs, sorted.
func Names() []string {
	return slices.Sorted(maps.Keys(all))
}

// Path returns where the program is after Build. It need not exist yet.
func Path(name string) (string, error) {
	t, err := find(name)
	if err != nil {
		return "", err
	}
	return t.path, nil
}

// Version returns the pinned version of the program, for example v1.36.3.
func Version(name string) (string, error) {
	t, err := find(name)
	if err != nil {
		return "", err
	}
	return t.version, nil
}

type target struct {
	program
	name, version string
	dir           string // the tool's folder
	folder        string // the program's folder in the cache
	path          string
}

func (t target) built() bool {
	_, err := os.Stat(t.path)
	return err == nil
}

func find(name string) (target, error) {
	p, ok := all[name]
	if !ok {
		return target{}, fmt.Errorf("finding program %q: it is none of %s", name, strings.Join(Names(), ", "))
	}
	root, err := ModuleRoot()
	if err != nil {
		return target{}, fmt.Errorf("finding program %s: %w", name, err)
	}
	cache, err := cacheDir()
	if err != nil {
		return target{}, fmt.Errorf("finding program %s: %w", name, err)
	}
	t := target{program: p, name: name, dir: filepath.Join(root, "tools", p.tool)}
	mod, err := os.ReadFile(filepath.Join(t.dir, "go.mod"))
	if err != nil {
		return target{}, fmt.Errorf("reading the pin of %s: %w", name, err)
	}
	sum, err := os.ReadFile(filepath.Join(t.dir, "go.sum"))
	if err != nil {
		return target{}, fmt.Errorf("reading the checksums of %s: %w", name, err)
	}
	if t.version = pinned(string(mod), p.module); t.version == "" {
		return target{}, fmt.Errorf("reading the pin of %s: %s/go.mod does not require %s", name, t.dir, p.module)
	}
	parts := []string{string(mod), string(sum), t.recipe(), runtime.Version(), runtime.GOARCH}
	if p.ours {
		main, err := os.ReadFile(filepath.Join(t.dir, name, "main.go"))
		if err != nil {
			return target{}, fmt.Errorf("reading the source of %s: %w", name, err)
		}
		parts = append(parts, string(main))
	}
	h := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(h, "%d\n%s\n", len(part), part)
	}
	t.folder = filepath.Join(cache, "lab", name+"-"+hex.EncodeToString(h.Sum(nil))[:16])
	t.path = filepath.Join(t.folder, name)
	return t, nil
}

func (t target) pkgPath() string {
	switch {
	case t.ours:
		return "./" + t.name
	case t.pkg == "":
		return t.module
	}
	return t.module + "/" + t.pkg
}

func (t target) ldflags() string {
	ld := "-s -w"
	if t.stamp != nil {
		stamps := t.stamp(t.version)
		for _, name := range slices.Sorted(maps.Keys(stamps)) {
			ld += " -X " + name + "=" + stamps[name]
		}
	}
	return ld
}

// A hash of the recipe is in the folder's name.
func (t target) recipe() string {
	args := []string{"build", "-trimpath", "-mod=readonly", "-buildvcs=false", "-ldflags=" + t.ldflags(), "-o="}
	if t.tags != "" {
		args = append(args, "-tags="+t.tags)
	}
	return strings.Join(append(args, t.pkgPath()), "\n")
}

// pinned returns the version of the replacement in go.mod, or else the required version.
func pinned(mod, module string) string {
	required := ""
	for line := range strings.Lines(mod) {
		line, replacement, replaced := strings.Cut(strings.TrimSpace(line), " => "+module+" ")
		fields := strings.Fields(strings.TrimPrefix(strings.TrimPrefix(line, "replace "), "require "))
		switch {
		case len(fields) == 0 || fields[0] != module:
		case replaced:
			return replacement
		case len(fields) >= 2 && strings.HasPrefix(fields[1], "v"):
			required = fields[1]
		}
	}
	return required
}

func cacheDir() (string, error) {
	if dir := os.Getenv("DRYDOCK_CACHE"); dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("choosing a cache folder (set DRYDOCK_CACHE): %w", err)
	}
	return filepath.Join(dir, "drydock"), nil
}

// ModuleRoot returns the path of the checkout: the folder with tools/, up from the working
// directory.
func ModuleRoot() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the checkout: %w", err)
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && slices.Contains(strings.Split(string(mod), "\n"), "module drydock.dev/drydock") {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("no checkout of drydock.dev/drydock at or above %s: run this inside one", start)
		}
	}
}
