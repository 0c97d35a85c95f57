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

// hostKeys are the keys of a known_hosts file. Drydock never adds a key.
//
// A host must show the key for its name. A Node's addresses are what its kubelet reports, and a
// lying kubelet must not cause a restart of another machine's kubelet. So a line about an address
// counts only if an operator configured the address, and if no line is about the name.
type hostKeys struct {
	file  string
	check ssh.HostKeyCallback
	// authority has the numbers of the lines with a certificate authority (@cert-authority).
	authority map[int]bool
}

// readHostKeys parses the known_hosts file at path. content is what the caller has read from the
// file. It is an error if the file has changed since.
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

// pinned has the keys that the known_hosts file has for one host.
type pinned struct {
	hosts *hostKeys
	// subject is the host's name with its port, or the address if no line is about the name.
	subject            string
	plain, authorities []knownhosts.KnownKey
	// subjects are the names and addresses that a line for this host may be about.
	subjects []string
}

// of returns the keys that the file has for a host, which is contacted at the address.
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

// algorithms returns the host key algorithms in order of preference. The known keys' algorithms are
// first, so that a host with several keys shows a known one. All others follow, so that an error
// can name the unknown key that a host shows. Certificates are included only if an authority is
// known.
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

// algorithmsOf returns the signature algorithms for a key type, without SHA-1.
func algorithmsOf(keyType string) []string {
	if keyType == ssh.KeyAlgoRSA {
		return []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256}
	}
	if slices.Contains(keyTypes, keyType) {
		return []string{keyType}
	}
	return nil
}

// verify checks the key that a host shows. If it rejects the key, the error is ErrHostKey and names
// the key.
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
	// The library's own check is not used here: it also accepts an authority's key as the key of a
	// host.
	for _, k := range p.plain {
		if bytes.Equal(k.Key.Marshal(), key.Marshal()) {
			return nil
		}
	}
	return kinded(ErrHostKey, nil, "the host showed the key %s, but %s has %s; if the host was rebuilt, correct the line; if not, an attacker may be between Drydock and the host", fingerprint(seen), p.hosts.file, p.known())
}

// known lists up to three of the host's keys in the file, for a sentence.
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

// noKey is a key that matches no line, so that the library's error lists the host's keys in the
// file.
type noKey struct{}

func (noKey) Type() string                        { return "none" }
func (noKey) Marshal() []byte                     { return []byte("nobody's") }
func (noKey) Verify([]byte, *ssh.Signature) error { return errors.New("this key signs nothing") }

// nowhere is a placeholder for the network address that the library's function requires.
type nowhere struct{}

func (nowhere) Network() string { return "tcp" }
func (nowhere) String() string  { return "[::]:0" }
