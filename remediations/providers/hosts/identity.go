package hosts

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"

	"golang.org/x/crypto/ssh"

	"drydock.dev/drydock/internal/secretfile"
)

const (
	maxKey        = 64 << 10
	maxKnownHosts = 4 << 20
)

type identity struct {
	signer ssh.Signer
	hosts  *hostKeys
	digest [sha256.Size]byte
}

// Errors never contain a part of the key.
func readIdentity(keyFile, knownHostsFile string) (*identity, error) {
	key, err := secretfile.Read("the SSH key file", keyFile, maxKey)
	if err != nil {
		return nil, kinded(errSetup, nil, "%v", err)
	}
	signer, err := ssh.ParsePrivateKey(key)
	var locked *ssh.PassphraseMissingError
	switch {
	case errors.As(err, &locked):
		return nil, kinded(errSetup, nil, "reading the SSH key file %s: the key has a passphrase, which Drydock cannot enter; make a key without one (ssh-keygen -N '')", keyFile)
	case err != nil:
		return nil, kinded(errSetup, nil, "reading the SSH key file %s: the file has no usable private key; make one with ssh-keygen -t ed25519", keyFile)
	}
	known, err := secretfile.Read("the known_hosts file", knownHostsFile, maxKnownHosts)
	if err != nil {
		return nil, kinded(errSetup, nil, "%v", err)
	}
	hosts, err := readHostKeys(knownHostsFile, known)
	if err != nil {
		return nil, kinded(errSetup, nil, "%v", err)
	}
	id := &identity{signer: signer, hosts: hosts}
	own, theirs := sha256.Sum256(key), sha256.Sum256(known)
	id.digest = sha256.Sum256(bytes.Join([][]byte{own[:], theirs[:]}, nil))
	return id, nil
}

// fingerprint has the form of ssh-keygen -l.
func fingerprint(key ssh.PublicKey) string {
	return fmt.Sprintf("%s %s", key.Type(), ssh.FingerprintSHA256(key))
}
