package programs

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// OwnPrograms is the environment variable that makes Build use the user's own programs in place of
// programs that are not built yet: from the folder KUBEBUILDER_ASSETS, or else from the PATH. The
// demo sets it. Tests run the pinned programs.
const OwnPrograms = "DRYDOCK_OWN_PROGRAMS"

var versionArgs = map[string][]string{"kubectl": {"version", "--client"}, "kube-state-metrics": {"version"}}

var anyVersion = regexp.MustCompile(`\bv?([0-9]+\.[0-9]+)\.[0-9]+`)

// ownProgram returns "" if the user has no such program of the pinned minor version.
func ownProgram(ctx context.Context, t target) string {
	if os.Getenv(OwnPrograms) == "" {
		return ""
	}
	var candidates []string
	if assets := os.Getenv("KUBEBUILDER_ASSETS"); assets != "" {
		candidates = append(candidates, filepath.Join(assets, t.name))
	}
	if found, err := exec.LookPath(t.name); err == nil {
		candidates = append(candidates, found)
	}
	for _, path := range candidates {
		if minorOf(ctx, path, t.name) == t.minor() {
			return path
		}
	}
	return ""
}

// minorOf returns "" if the version is unknown.
func minorOf(ctx context.Context, path, name string) string {
	args := versionArgs[name]
	if args == nil {
		args = []string{"--version"}
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	said, err := exec.CommandContext(ctx, path, args...).CombinedOutput()
	if found := anyVersion.FindSubmatch(said); err == nil && found != nil {
		return string(found[1])
	}
	return ""
}

// Prometheus 3.15 is v0.315 as a Go module.
func (t target) minor() string {
	parts := strings.Split(strings.TrimPrefix(t.version, "v"), ".")
	if t.module == "github.com/prometheus/prometheus" && len(parts[1]) == 3 {
		return parts[1][:1] + "." + strings.TrimPrefix(parts[1][1:], "0")
	}
	return parts[0] + "." + parts[1]
}
