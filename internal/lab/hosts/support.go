package hosts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"drydock.dev/drydock/internal/lab/missing"
	"drydock.dev/drydock/internal/lab/programs"
)

// Supported returns an error that names what this machine lacks for hosts with these options.
func (o Options) Supported() error {
	if os.Geteuid() != 0 {
		return errors.New("looking for what hosts need: they need root")
	}
	packages := map[string]string{
		"systemd-nspawn": "systemd-container", "ip": "iproute2", "nsenter": "util-linux", "unshare": "util-linux", "sh": "dash",
	}
	if o.Pods { // kube-proxy uses nft, also beside the hosts
		packages["nft"], packages["pgrep"] = "nftables", "procps"
	}
	if tree, err := programs.Kept(o.tree().name()); err != nil {
		return err
	} else if _, err := os.Stat(tree); err != nil {
		packages["debootstrap"] = "debootstrap" // only needed if the tree is not in the cache
	}
	var missing []string
	for program, pkg := range packages {
		if _, err := exec.LookPath(program); err != nil {
			missing = append(missing, fmt.Sprintf("%s (package %s)", program, pkg))
		}
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		return fmt.Errorf("looking for what hosts need: there is no %s: install what is named in brackets", strings.Join(missing, ", no "))
	}
	if _, err := groups(); err != nil {
		return err
	}
	if o.Pods {
		if _, err := hierarchies(); err != nil {
			return err
		}
	}
	return supportedByKernel()
}

// Prepare makes the tree of the hosts if it does not exist. It needs a mirror of Debian.
func (o Options) Prepare(ctx context.Context, out io.Writer) error {
	_, err := o.tree().base(ctx, out)
	return err
}

func supportedByKernel() error {
	net, err := newNamespace(unix.CLONE_NEWNET)
	if err != nil {
		return err
	}
	defer net.close()
	if err := net.ip("link add veth0 type veth peer name veth1", "link add bridge0 type bridge"); err != nil {
		return fmt.Errorf("looking for what hosts need of the kernel: %w", err)
	}
	mounts, err := newNamespace(unix.CLONE_NEWNS)
	if err != nil {
		return err
	}
	defer mounts.close()
	dir, err := os.MkdirTemp("", "drydock-hosts-")
	if err != nil {
		return fmt.Errorf("looking for what hosts need: %w", err)
	}
	defer os.Remove(dir)
	return mounts.do(func() error {
		if err := mountMemory(dir); err != nil {
			return err
		}
		lower := dir + "/lower"
		if err := os.Mkdir(lower, 0o755); err != nil {
			return fmt.Errorf("looking for what hosts need: %w", err)
		}
		_, err := mountOverlay(lower, dir+"/host")
		return err
	})
}

// Need skips a test if this machine does not support hosts. If DRYDOCK_NO_SKIP is set, the test
// fails.
func Need(t testing.TB) {
	t.Helper()
	o := Options{}
	err := o.Supported()
	if err == nil {
		err = o.Prepare(t.Context(), os.Stderr) // made once from Debian's packages, which may be unreachable
	}
	missing.Need(t, "A CLUSTER OF HOSTS", err)
}
