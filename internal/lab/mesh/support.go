package mesh

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"drydock.dev/drydock/internal/lab/missing"
)

// Supported returns an error that names what this machine lacks for a mesh.
func Supported() error {
	var missing []string
	for program, pkg := range map[string]string{"ip": "iproute2", "bridge": "iproute2", "nft": "nftables", "nsenter": "util-linux"} {
		if _, err := exec.LookPath(program); err != nil {
			missing = append(missing, fmt.Sprintf("%s (package %s)", program, pkg))
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("looking for what a mesh needs: there is no %s", strings.Join(missing, ", no "))
	}
	n, err := newNamespace()
	if err != nil {
		return fmt.Errorf("%w (it needs root)", err)
	}
	defer n.close()
	if err := n.ip([]string{"link add vxlan0 type vxlan id 1 dstport 8472", "link add veth0 type veth peer name veth1", "link add bridge0 type bridge"}); err != nil {
		return fmt.Errorf("looking for what a mesh needs of the kernel: %w", err)
	}
	if err := n.nft(tracked...); err != nil {
		return fmt.Errorf("looking for what a mesh needs of nftables: %w", err)
	}
	return nil
}

// Need skips a test if this machine does not support a mesh. If DRYDOCK_NO_SKIP is set, the test
// fails.
func Need(t testing.TB) {
	t.Helper()
	missing.Need(t, "A MESH", Supported())
}
