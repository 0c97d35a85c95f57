package hosts

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"drydock.dev/drydock/internal/secretfile"
)

// hostKeys has the keys of a known_hosts file. Drydock never adds a key.
//
// A host must have a key that the file has for the host's name. A line for an address is used only
// if an operator configured the address, and the file has no line for the name. Other addresses
// come from the Node's kubelet. A kubelet that reports a false address must not cause a restart on
// another machine.
type hostKeys struct {
	file  string
	check ssh.HostKeyCallback
	// authority has the numbers of the lines with a certificate authority (@cert-authority).
	authority map[int]bool
}

// readHostKeys returns an error if the file is no longer content, which the caller has read before.
func readHostKeys(path string, content []byte) (*hostKeys, error) {
	check, err := knownhosts.New(path)
	if err != nil {
		return nil, fmt.Errorf("reading the known_hosts file %s: %s", path, clip(strings.TrimPrefix(err.Error(), "knownhosts: ")))
	}
	if again, err := secretfile.Read("the known_hosts file", path, maxKnownHosts); err != nil || !bytes.Equal(again, content) {
		return nil, fmt.Errorf("reading the known_hosts file %s: the file has changed meanwhile; Drydock reads it again for the next command", path)
	}
	h := &hostKeys{file: path, check: check, authority: map[int]bool{}}
	number := 0
	for l := range bytes.Lines(content) {
		number++
		h.authority[number] = bytes.HasPrefix(bytes.TrimLeft(l, " \t"), []byte("@cert-authority"))
	}
	return h, nil
}

// plain are keys of the host itself, and authorities are keys that sign host certificates.
type pinned struct {
	hosts *hostKeys
	// subject is the host:port that was looked up last: the host's name, or its address if the file
	// has no line for the name.
	subject            string
	plain, authorities []knownhosts.KnownKey
	// subjects has the host's name, and its address only if an operator configured it.
	subjects []string
}

func (h *hostKeys) of(host Host, address string, port int) pinned {
	p := pinned{hosts: h, subjects: []string{host.Name}}
	if host.Configured {
		p.subjects = append(p.subjects, address)
	}
	for _, subject := range p.subjects {
		p.subject = net.JoinHostPort(subject, strconv.Itoa(port))
		var found *knownhosts.KeyError
		if !errors.As(h.check(p.subject, nowhere{}, noKey{}), &found) || len(found.Want) == 0 {
			continue
		}
		for _, k := range found.Want {
			if h.authority[k.Line] {
				p.authorities = append(p.authorities, k)
			} else {
				p.plain = append(p.plain, k)
			}
		}
		return p
	}
	return p
}

// algorithms has those of known keys first, so that a host with several keys uses a known one. All
// others follow, so that an error can name the host's unknown key. Algorithms for certificates need
// an authority in the file.
func (p pinned) algorithms() []string {
	var out []string
	if len(p.authorities) > 0 {
		out = append(out, certificates...)
	}
	for _, k := range p.plain {
		out = append(out, algorithmsOf(k.Key.Type())...)
	}
	for _, all := range keyTypes {
		out = append(out, algorithmsOf(all)...)
	}
	var once []string
	for _, a := range out {
		if !slices.Contains(once, a) {
			once = append(once, a)
		}
	}
	return once
}

var (
	keyTypes     = []string{ssh.KeyAlgoED25519, ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521, ssh.KeyAlgoRSA}
	certificates = []string{ssh.CertAlgoED25519v01, ssh.CertAlgoECDSA256v01, ssh.CertAlgoECDSA384v01, ssh.CertAlgoECDSA521v01, ssh.CertAlgoRSASHA512v01, ssh.CertAlgoRSASHA256v01}
)

// algorithmsOf leaves out SHA-1.
func algorithmsOf(keyType string) []string {
	if keyType == ssh.KeyAlgoRSA {
		return []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256}
	}
	if slices.Contains(keyTypes, keyType) {
		return []string{keyType}
	}
	return nil
}

// If the key is not the host's, the error is ErrHostKey and names the key.
func (p pinned) verify(key ssh.PublicKey, remote net.Addr) error {
	seen := key
	certificate, vouched := key.(*ssh.Certificate)
	if vouched {
		seen = certificate.Key
	}
	err := p.hosts.check(p.subject, remote, key)
	var revoked *knownhosts.RevokedError
	switch {
	case errors.As(err, &revoked):
		return kinded(ErrHostKey, nil, "the host's key %s is revoked by %s:%d; give the host a new key", fingerprint(seen), p.hosts.file, revoked.Revoked.Line)
	case len(p.plain)+len(p.authorities) == 0:
		return kinded(ErrHostKey, nil, "%s has no line for %s, and the host showed the key %s; if that is the host's key (run ssh-keygen -lf /etc/ssh/ssh_host_*_key.pub on it), add it", p.hosts.file, strings.Join(p.subjects, " or "), fingerprint(seen))
	case vouched && len(certificate.ValidPrincipals) == 0: // a certificate without names would be valid for every host
		return kinded(ErrHostKey, nil, "the certificate of the host's key %s names no host; sign it for %q", fingerprint(seen), p.subjects[0])
	case vouched && err != nil:
		return kinded(ErrHostKey, err, "the certificate of the host's key %s, signed by %s, is not valid for %s by %s; renew the certificate, or add its authority", fingerprint(seen), fingerprint(certificate.SignatureKey), p.subject, p.hosts.file)
	case vouched:
		return nil
	}
	// The library's check is not used for a plain key, because it also accepts the key of an
	// authority.
	for _, k := range p.plain {
		if bytes.Equal(k.Key.Marshal(), key.Marshal()) {
			return nil
		}
	}
	return kinded(ErrHostKey, nil, "the host showed the key %s, but %s has %s; if the host was rebuilt, correct the line; if not, an attacker may be between Drydock and the host", fingerprint(seen), p.hosts.file, p.known())
}

func (p pinned) known() string {
	var out []string
	for _, k := range p.plain {
		out = append(out, fmt.Sprintf("%s in line %d", fingerprint(k.Key), k.Line))
	}
	for _, k := range p.authorities {
		out = append(out, fmt.Sprintf("the authority %s in line %d", fingerprint(k.Key), k.Line))
	}
	if more := len(out) - 3; more > 0 {
		out = append(out[:3], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(out, ", ")
}

// noKey is looked up because the library's error for an unknown key lists all keys that the file
// has for the host.
type noKey struct{}

func (noKey) Type() string                        { return "none" }
func (noKey) Marshal() []byte                     { return []byte("nobody's") }
func (noKey) Verify([]byte, *ssh.Signature) error { return errors.New("this key signs nothing") }

// nowhere stands for the host's network address, which the library requires.
type nowhere struct{}

func (nowhere) Network() string { return "tcp" }
func (nowhere) String() string  { return "[::]:0" }
