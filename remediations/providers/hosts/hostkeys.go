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

// hostKeys are the keys of a known_hosts file. No key is ever learned.
//
// The expected key depends on the host's name. A Node's addresses are what its kubelet reports, and
// a lying kubelet must not cause a restart of another machine's kubelet. Lines about an address
// count only if an operator has configured the address, and no line is about the name.
type hostKeys struct {
	file  string
	check ssh.HostKeyCallback
	// authority are the numbers of the lines about an authority.
	authority map[int]bool
}

// readHostKeys reads a known_hosts file. content must be what was already read from it.
func readHostKeys(path string, content []byte) (*hostKeys, error) {
	check, err := knownhosts.New(path)
	if err != nil {
		return nil, fmt.Errorf("reading the known_hosts file %s: %s", path, clip(strings.TrimPrefix(err.Error(), "knownhosts: ")))
	}
	if again, err := secretfile.Read("the known_hosts file", path, maxKnownHosts); err != nil || !bytes.Equal(again, content) {
		return nil, fmt.Errorf("reading the known_hosts file %s: it was changed meanwhile; it is read again for the next command", path)
	}
	h := &hostKeys{file: path, check: check, authority: map[int]bool{}}
	number := 0
	for l := range bytes.Lines(content) {
		number++
		h.authority[number] = bytes.HasPrefix(bytes.TrimLeft(l, " \t"), []byte("@cert-authority"))
	}
	return h, nil
}

// pinned is what the file has about one host.
type pinned struct {
	hosts *hostKeys
	// subject is the host's name, or the address if no line is about the name.
	subject            string
	plain, authorities []knownhosts.KnownKey
	// subjects are the names and addresses that a line could be about.
	subjects []string
}

// of returns what the file has about a host at one of its addresses.
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

// algorithms returns the algorithms of the known keys first, so that a host with several keys shows
// one of these. Then come the others, so that an error can name another key that the host shows.
// Certificates are included only if an authority is known.
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

// algorithmsOf returns the signatures that a key of that type makes, without SHA-1.
func algorithmsOf(keyType string) []string {
	if keyType == ssh.KeyAlgoRSA {
		return []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256}
	}
	if slices.Contains(keyTypes, keyType) {
		return []string{keyType}
	}
	return nil
}

// verify judges the key that a host has shown. Its error is ErrHostKey, and names the key.
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
		return kinded(ErrHostKey, nil, "its host key %s is revoked by %s:%d; give the host another one", fingerprint(seen), p.hosts.file, revoked.Revoked.Line)
	case len(p.plain)+len(p.authorities) == 0:
		return kinded(ErrHostKey, nil, "%s has no line for %s, and the host showed %s; if that is its key (ssh-keygen -lf /etc/ssh/ssh_host_*_key.pub there), add it", p.hosts.file, strings.Join(p.subjects, " or "), fingerprint(seen))
	case vouched && len(certificate.ValidPrincipals) == 0: // it would be valid for any host
		return kinded(ErrHostKey, nil, "the certificate of its host key %s names no host; sign it for %q", fingerprint(seen), p.subjects[0])
	case vouched && err != nil:
		return kinded(ErrHostKey, err, "the certificate of its host key %s, signed by %s, does not hold for %s with %s; renew it, or add its authority", fingerprint(seen), fingerprint(certificate.SignatureKey), p.subject, p.hosts.file)
	case vouched:
		return nil
	}
	// The library's check is not used: it accepts an authority's key as a host's key as well.
	for _, k := range p.plain {
		if bytes.Equal(k.Key.Marshal(), key.Marshal()) {
			return nil
		}
	}
	return kinded(ErrHostKey, nil, "it showed the host key %s, where %s has %s; if the host was rebuilt, correct the line; if not, an attacker may be between Drydock and the host", fingerprint(seen), p.hosts.file, p.known())
}

// known lists the keys in the file, as far as that fits a sentence.
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

// noKey matches no line, so that the library's error lists the keys of the file.
type noKey struct{}

func (noKey) Type() string                        { return "none" }
func (noKey) Marshal() []byte                     { return []byte("nobody's") }
func (noKey) Verify([]byte, *ssh.Signature) error { return errors.New("this key signs nothing") }

// nowhere is an address without a meaning, for a call that needs one.
type nowhere struct{}

func (nowhere) Network() string { return "tcp" }
func (nowhere) String() string  { return "[::]:0" }
