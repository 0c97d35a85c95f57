package hosts

import (
	"crypto/rand"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// vouch makes the site's host show a certificate that the authority signed.
func (s *site) vouch(t *testing.T, authority ssh.Signer, adjust func(*ssh.Certificate)) {
	t.Helper()
	c := &ssh.Certificate{
		Key: s.hostKey.PublicKey(), CertType: ssh.HostCert, KeyId: "cp-1", ValidPrincipals: []string{"cp-1"},
		ValidAfter: uint64(time.Now().Add(-time.Hour).Unix()), ValidBefore: uint64(time.Now().Add(time.Hour).Unix()),
	}
	if adjust != nil {
		adjust(c)
	}
	require.NoError(t, c.SignCert(rand.Reader, authority))
	signer, err := ssh.NewCertSigner(c, s.hostKey)
	require.NoError(t, err)
	s.config.AddHostKey(signer)
}

func authorityLine(pattern string, key ssh.PublicKey) string {
	return "@cert-authority " + pattern + " " + strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))
}

func (s *site) pattern(host string) string { return fmt.Sprintf("[%s]:%d", host, s.options.Port) }

// refusedBy asserts that nothing is sent to the host, and that the sentence names the key that it
// showed.
func (s *site) refusedBy(t *testing.T, says string) {
	t.Helper()
	_, err := s.client(t).Status(t.Context(), s.host, "kubelet.service")
	require.ErrorIs(t, err, ErrHostKey)
	require.ErrorContains(t, err, says)
	require.ErrorContains(t, err, ssh.FingerprintSHA256(s.hostKey.PublicKey()))
	require.Empty(t, s.received())
}

func (s *site) welcomed(t *testing.T) {
	t.Helper()
	_, err := s.client(t).Status(t.Context(), s.host, "kubelet.service")
	require.NoError(t, err)
}

func TestAnUnknownHostOrAnotherKeyGetsNoCommand(t *testing.T) {
	t.Parallel()
	other, _ := newSigner(t)
	s := newSite(t)
	s.know(t, "cp-2", s.hostKey.PublicKey())
	s.refusedBy(t, `has no line for cp-1, and`)

	s = newSite(t)
	s.know(t, "cp-1", other.PublicKey())
	s.refusedBy(t, "if the host was rebuilt, correct the line")
	_, err := s.client(t).Status(t.Context(), s.host, "kubelet.service")
	require.ErrorContains(t, err, ssh.FingerprintSHA256(other.PublicKey()), "and the one that it should be")

	s = newSite(t)
	own := knownhosts.Line([]string{s.pattern("cp-1")}, s.hostKey.PublicKey())
	s.knowLine(t, own, "@revoked * "+strings.TrimSpace(string(ssh.MarshalAuthorizedKey(s.hostKey.PublicKey()))))
	s.refusedBy(t, "revoked")

	s = newSite(t)
	s.know(t, "cp-1", s.hostKey.PublicKey())
	s.welcomed(t)
}

// A kubelet that reports a neighbour's address cannot cause a restart of the neighbour's kubelet:
// the name counts. A line about an address counts only if an operator has configured the address,
// and no line is about the name.
func TestAHostIsKnownByItsName(t *testing.T) {
	t.Parallel()
	other, _ := newSigner(t)
	s := newSite(t)
	s.host.Configured = true
	s.knowLine(t, knownhosts.Line([]string{s.pattern("127.0.0.1")}, s.hostKey.PublicKey()), knownhosts.Line([]string{s.pattern("cp-1")}, other.PublicKey()))
	s.refusedBy(t, "the host showed the key")

	s = newSite(t)
	s.knowLine(t, knownhosts.Line([]string{s.pattern("127.0.0.1")}, s.hostKey.PublicKey()))
	s.refusedBy(t, `has no line for cp-1, and`)

	s = newSite(t)
	s.host.Configured = true
	s.knowLine(t, knownhosts.Line([]string{s.pattern("127.0.0.1")}, s.hostKey.PublicKey()))
	s.welcomed(t)

	s = newSite(t)
	s.knowLine(t, knownhosts.HashHostname(s.pattern("cp-1"))+" "+strings.TrimSpace(string(ssh.MarshalAuthorizedKey(s.hostKey.PublicKey()))))
	s.welcomed(t)
}

func TestACertificateOfAnAuthorityIsHonoured(t *testing.T) {
	t.Parallel()
	authority, _ := newSigner(t)
	stranger, _ := newSigner(t)
	for name, c := range map[string]struct {
		signedBy ssh.Signer
		adjust   func(*ssh.Certificate)
		says     string // empty: accepted
	}{
		"for this host":    {signedBy: authority},
		"expired":          {authority, func(c *ssh.Certificate) { c.ValidBefore = uint64(time.Now().Add(-time.Minute).Unix()) }, "cert has expired"},
		"not valid yet":    {authority, func(c *ssh.Certificate) { c.ValidAfter = uint64(time.Now().Add(time.Minute).Unix()) }, "not yet valid"},
		"for another host": {authority, func(c *ssh.Certificate) { c.ValidPrincipals = []string{"cp-2"} }, "not in the set of valid principals"},
		"for its address":  {authority, func(c *ssh.Certificate) { c.ValidPrincipals = []string{"127.0.0.1"} }, "not in the set of valid principals"},
		"for no host":      {authority, func(c *ssh.Certificate) { c.ValidPrincipals = nil }, "names no host"},
		"of a user":        {authority, func(c *ssh.Certificate) { c.CertType = ssh.UserCert }, "type 1"},
		"of a stranger":    {stranger, nil, "no authorities"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, func(s *site) { s.vouch(t, c.signedBy, c.adjust) })
			s.knowLine(t, authorityLine("*", authority.PublicKey()), authorityLine(s.pattern("*"), authority.PublicKey()))
			if c.says == "" {
				s.welcomed(t)
				return
			}
			s.refusedBy(t, c.says)
		})
	}
	s := newSite(t)
	s.knowLine(t, authorityLine(s.pattern("*"), authority.PublicKey()))
	s.refusedBy(t, "the authority")
}

// An authority signs host keys; its own key is not a host key.
func TestAnAuthoritysOwnKeyDoesNotIdentifyAHost(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.knowLine(t, authorityLine(s.pattern("*"), s.hostKey.PublicKey()))
	s.refusedBy(t, "the authority")
}

// The library reads the file itself, so the known lines may belong to another version of the file.
func TestAFileThatChangesWhileItIsReadIsReadAgain(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	_, err := readHostKeys(s.options.KnownHostsFile, []byte("# before"))
	require.ErrorContains(t, err, "the file has changed meanwhile")
}

// A host has keys of several kinds, and the file may have only one.
func TestTheHandshakeRequestsTheKnownKeyType(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(s *site) {
		rsaKey := newRSA(t)
		s.config.AddHostKey(rsaKey)
		s.know(t, "cp-1", rsaKey.PublicKey())
	})
	s.welcomed(t)
}

func TestAUserKeyThatIsRefusedIsDenied(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	_, other := newSigner(t)
	require.NoError(t, os.WriteFile(s.options.KeyFile, other, 0o600))
	outcome, err := s.client(t).Restart(t.Context(), s.host, "kubelet.service", "a-1-1", may)
	require.EqualValues(t, "refused", outcome)
	require.ErrorIs(t, err, errDenied)
	require.ErrorContains(t, err, "authorized_keys")
	require.Empty(t, s.received())
}

// Both files are read again: a removed key is not used further over a connection that it opened.
func TestFilesThatChangeCountForTheNextCommand(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.client(t)
	_, err := c.Status(t.Context(), s.host, "kubelet.service")
	require.NoError(t, err)
	good, err := os.ReadFile(s.options.KeyFile)
	require.NoError(t, err)

	_, other := newSigner(t)
	require.NoError(t, os.WriteFile(s.options.KeyFile, other, 0o600))
	_, err = c.Status(t.Context(), s.host, "kubelet.service")
	require.ErrorIs(t, err, errDenied)

	require.NoError(t, os.WriteFile(s.options.KeyFile, good, 0o600))
	_, err = c.Status(t.Context(), s.host, "kubelet.service")
	require.NoError(t, err)

	known, err := os.ReadFile(s.options.KnownHostsFile)
	require.NoError(t, err)
	stranger, _ := newSigner(t)
	s.know(t, "cp-1", stranger.PublicKey())
	_, err = c.Status(t.Context(), s.host, "kubelet.service")
	require.ErrorIs(t, err, ErrHostKey)

	for path, content := range map[string]string{s.options.KeyFile: "-----BEGIN nonsense", s.options.KnownHostsFile: "cp-1 ssh-ed25519 !!!"} {
		require.NoError(t, os.WriteFile(s.options.KeyFile, good, 0o600))
		require.NoError(t, os.WriteFile(s.options.KnownHostsFile, known, 0o600))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		_, err = c.Status(t.Context(), s.host, "kubelet.service")
		require.ErrorIs(t, err, errSetup)
		require.ErrorContains(t, err, path)
		require.NotContains(t, err.Error(), "nonsense", "what is in a key file is nobody's to read")
	}
}
