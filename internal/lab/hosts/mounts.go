package hosts

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// It uses only as much memory as the hosts have written.
func mountMemory(dir string) error {
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=3g,mode=755"); err != nil {
		return fmt.Errorf("mounting memory for the hosts: %w", err)
	}
	return nil
}

// mountOverlay mounts a host's own layer over the tree, and returns the host's root file system.
func mountOverlay(tree, dir string) (root string, err error) {
	at := map[string]string{}
	for _, name := range []string{"upper", "work", "root"} {
		at[name] = filepath.Join(dir, name)
		if err := os.MkdirAll(at[name], 0o755); err != nil {
			return "", fmt.Errorf("making a host's folders: %w", err)
		}
	}
	// All users of the host must be able to read its root file system, whatever the umask of this
	// process is.
	if err := os.Chmod(at["upper"], 0o755); err != nil {
		return "", fmt.Errorf("making a host's folders: %w", err)
	}
	options := "lowerdir=" + tree + ",upperdir=" + at["upper"] + ",workdir=" + at["work"]
	if err := unix.Mount("overlay", at["root"], "overlay", 0, options); err != nil {
		return "", fmt.Errorf("mounting a host's layer over the tree: %w", err)
	}
	return at["root"], nil
}

// The ID of the process that made the groups follows.
const groupPrefix = "drydock-lab-hosts-"

func groups() (string, error) {
	for _, dir := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
		var fs unix.Statfs_t
		if err := unix.Statfs(dir, &fs); err == nil && fs.Type == unix.CGROUP2_SUPER_MAGIC {
			return dir, nil
		}
	}
	return "", errors.New("looking for what hosts need of the kernel: version 2 of control groups is not mounted")
}

// newGroups makes one group of version 2 or, with pods, one in each hierarchy of version 1. It
// removes the empty groups of killed clusters.
func newGroups(pods bool) ([]string, error) {
	root, err := groups()
	if err != nil {
		return nil, err
	}
	parents := map[string]string{root: root} // by hierarchy
	if pods {
		if parents, err = hierarchies(); err != nil {
			return nil, err
		}
	}
	var made []string
	for hierarchy, parent := range parents {
		removeLeftGroups(hierarchy)
		dir := filepath.Join(parent, fmt.Sprintf("%s%d-%s", groupPrefix, os.Getpid(), strings.ToLower(rand.Text()[:8])))
		if err := makeGroup(dir); err != nil {
			return nil, err
		}
		made = append(made, dir)
	}
	return made, nil
}

// A group is at most two levels below the root of the hierarchy, because it is below the group of
// the process that made it.
func removeLeftGroups(hierarchy string) {
	for _, below := range []string{"", "*", "*/*"} {
		old, _ := filepath.Glob(filepath.Join(hierarchy, below, groupPrefix+"*")) // the pattern is valid
		for _, dir := range old {
			pid, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), groupPrefix), "-")
			if _, err := os.Stat("/proc/" + pid); errors.Is(err, os.ErrNotExist) {
				removeGroup(dir)
			}
		}
	}
}

// In version 1, the cpuset of a new group has no processor and no memory, and then no process may
// enter it. So both are copied from the parent group.
func makeGroup(dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return fmt.Errorf("making a control group: %w", err)
	}
	for _, name := range []string{"cpuset.cpus", "cpuset.mems"} {
		above, err := os.ReadFile(filepath.Join(filepath.Dir(dir), name))
		if errors.Is(err, os.ErrNotExist) {
			continue // the hierarchy has another controller
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), above, 0o600)
		}
		if err != nil {
			return fmt.Errorf("giving a control group the processors of the one above: %w", err)
		}
	}
	return nil
}

// removeGroup begins with the innermost group. A group in use stays, and the next cluster removes
// it.
func removeGroup(dir string) {
	inner, _ := os.ReadDir(dir) // at worst the group stays
	for _, e := range inner {
		if e.IsDir() {
			removeGroup(filepath.Join(dir, e.Name()))
		}
	}
	_ = os.Remove(dir)
}
