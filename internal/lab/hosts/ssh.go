package hosts

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"drydock.dev/drydock/internal/lab/programs"
)

type keys struct {
	dir        string
	authorized string // the public key, as a line of the file authorized_keys
}

func newKeys(dir string) (*keys, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the folder of the SSH keys: %w", err)
	}
	signer, text, err := newKey()
	if err != nil {
		return nil, err
	}
	k := &keys{dir: dir, authorized: strings.TrimSpace(string(ssh.MarshalAuthorizedKey(signer.PublicKey())))}
	return k, writeOnce(filepath.Join(dir, "key"), text)
}

func newKey() (ssh.Signer, []byte, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("making an SSH key: %w", err)
	}
	signer, err := ssh.NewSignerFromSigner(private)
	if err != nil {
		return nil, nil, fmt.Errorf("making an SSH key: %w", err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		return nil, nil, fmt.Errorf("encoding an SSH key: %w", err)
	}
	return signer, pem.EncodeToMemory(block), nil
}

func writeOnce(path string, data []byte) error {
	if err := os.WriteFile(path, data, 0o600); err != nil {
		return fmt.Errorf("writing an SSH key: %w", err)
	}
	return nil
}

func (k *keys) writeKnownHosts(hosts []*Host) error {
	var file bytes.Buffer
	for _, h := range hosts {
		fmt.Fprintln(&file, knownhosts.Line([]string{h.Name}, h.key.PublicKey()))
	}
	return writeOnce(filepath.Join(k.dir, "known_hosts"), file.Bytes())
}

// KeyFile returns the file with User's private key for all hosts.
func (h *Hosts) KeyFile() string { return filepath.Join(h.keys.dir, "key") }

// KnownHostsFile returns the file with the hosts' SSH keys, as they were when the file was written.
func (h *Hosts) KnownHostsFile() string { return filepath.Join(h.keys.dir, "known_hosts") }

// With version 1 of control groups, systemd sometimes loses the group of a starting unit ("Failed
// to attach to cgroup"). If the unit that permits logins fails, only root may log in for the rest
// of the boot. So it is restarted.
const loginsAgain = "[Service]\nRestart=on-failure\n"

// Drydock's access as docs/providers/ssh.md describes it, with the files in deploy/hosts.
func (h *Host) installSSH() error {
	if err := h.newHostKey(); err != nil {
		return err
	}
	home := "/home/" + User + "/.ssh"
	for _, f := range []struct {
		from, to string
		mode     fs.FileMode
		old, new string
	}{
		{"sudoers", "/etc/sudoers.d/drydock", 0o440, User, User},
		{"authorized_keys", home + "/authorized_keys", 0o600, "ssh-ed25519 AAAA...", h.hosts.keys.authorized},
	} {
		if err := h.installShipped(f.from, f.to, f.mode, map[string]string{f.old: f.new}); err != nil {
			return err
		}
	}
	if err := h.installHelper(nil); err != nil {
		return err
	}
	if err := h.write("/etc/systemd/system/systemd-user-sessions.service.d/again.conf", 0o644, []byte(loginsAgain)); err != nil {
		return err
	}
	return h.own(home)
}

// The script limits what Drydock may do on the host. further are additional changes to its text.
func (h *Host) installHelper(further map[string]string) error {
	changes := map[string]string{
		`units="` + KubeletUnit + " " + ContainerdUnit + `"`: `units="` + strings.Join(Units, " ") + `"`,
		"\nreboot=no\n": "\nreboot=yes\n",
	}
	maps.Copy(changes, further)
	return h.installShipped("drydock-host", "/usr/local/sbin/drydock-host", 0o755, changes)
}

func (h *Host) installShipped(from, to string, mode fs.FileMode, changes map[string]string) error {
	text, err := shipped(from)
	if err != nil {
		return err
	}
	for old, with := range changes {
		if !strings.Contains(text, old) {
			return fmt.Errorf("preparing host %s: deploy/hosts/%s has no %q", h.Name, from, old)
		}
		text = strings.ReplaceAll(text, old, with)
	}
	return h.write(to, mode, []byte(text))
}

func shipped(name string) (string, error) {
	root, err := programs.ModuleRoot()
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(filepath.Join(root, "deploy", "hosts", name))
	if err != nil {
		return "", fmt.Errorf("reading how hosts are prepared: %w", err)
	}
	return string(text), nil
}

// User is the first account of the tree, so its ID is known.
func (h *Host) own(dir string) error {
	const first = 1000
	return h.hosts.mounts.do(func() error {
		return filepath.WalkDir(filepath.Join(h.root, dir), func(path string, _ fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			return os.Chown(path, first, first)
		})
	})
}

func (h *Host) newHostKey() error {
	signer, text, err := newKey()
	if err != nil {
		return err
	}
	h.key = signer
	if err := h.write("/etc/ssh/ssh_host_ed25519_key", 0o600, text); err != nil {
		return err
	}
	return h.write("/etc/ssh/sshd_config.d/key.conf", 0o644, []byte("HostKey /etc/ssh/ssh_host_ed25519_key\n"))
}

// SSH runs a command line on the host as User and returns the output. It uses none of Drydock's
// code, and does not check the host's key.
func (h *Hosts) SSH(ctx context.Context, name, line string) (string, error) {
	text, err := os.ReadFile(h.KeyFile())
	if err != nil {
		return "", fmt.Errorf("reading the SSH key: %w", err)
	}
	signer, err := ssh.ParsePrivateKey(text)
	if err != nil {
		return "", fmt.Errorf("reading the SSH key: %w", err)
	}
	address := net.JoinHostPort(h.Host(name).Address(), strconv.Itoa(SSHPort))
	raw, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return "", fmt.Errorf("reaching host %s by SSH: %w", name, err)
	}
	defer raw.Close()
	conn, channels, requests, err := ssh.NewClientConn(raw, address, &ssh.ClientConfig{
		User: User, Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)}, HostKeyCallback: ssh.InsecureIgnoreHostKey(), //nolint:gosec // see above
	})
	if err != nil {
		return "", fmt.Errorf("reaching host %s by SSH: %w", name, err)
	}
	client := ssh.NewClient(conn, channels, requests)
	defer client.Close()
	session, err := client.NewSession()
	if err != nil {
		return "", fmt.Errorf("asking host %s by SSH: %w", name, err)
	}
	defer session.Close()
	out, err := session.CombinedOutput(line)
	if err != nil {
		return string(out), fmt.Errorf("running %q on host %s: %w", line, name, err)
	}
	return string(out), nil
}
