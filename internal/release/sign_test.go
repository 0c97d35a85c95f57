package main

import (
	"context"
	"crypto"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	"github.com/stretchr/testify/require"
)

// keyFile is a file with a private key, and the public one.
func keyFile(t *testing.T) (string, ed25519.PublicKey) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "key.pem")
	require.NoError(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600))
	return file, public
}

// papers makes the last files of a release that has two files so far.
func papers(t *testing.T, key string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	program, err := os.Executable()
	require.NoError(t, err)
	r := release{
		out: dir, version: version, url: url, commit: "0123456789012345678901234567890123456789", platforms: all[:1],
		builder: "https://example.com/builder", built: []binary{{"drydock", all[0], program}},
	}
	if key != "" {
		r.key, err = readKey(key)
		require.NoError(t, err)
	}
	for name, text := range map[string]string{"a.tgz": "a", "image/blob": "b", ".build/drydock": "c"} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	require.NoError(t, r.provenance(t.Context()))
	require.NoError(t, r.checksums(t.Context()))
	require.NoError(t, r.sign(t.Context()))
	return dir
}

// whole checks like a user with the folder and the public key: the signature of the checksums, and
// then the files.
func whole(t *testing.T, dir string, public ed25519.PublicKey) bool {
	t.Helper()
	sums, err := os.ReadFile(filepath.Join(dir, "SHA256SUMS"))
	require.NoError(t, err)
	text, err := os.ReadFile(filepath.Join(dir, "SHA256SUMS.sig"))
	require.NoError(t, err)
	signature, err := base64.StdEncoding.DecodeString(string(text[:len(text)-1]))
	require.NoError(t, err)
	check := exec.CommandContext(t.Context(), "sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS")
	check.Dir = dir
	return ed25519.Verify(public, sums, signature) && check.Run() == nil
}

// envelopeVerifier verifies envelopes by a public key.
type envelopeVerifier struct{ ed25519.PublicKey }

func (v envelopeVerifier) Verify(_ context.Context, data, signature []byte) error {
	if !ed25519.Verify(v.PublicKey, data, signature) {
		return os.ErrPermission
	}
	return nil
}
func (v envelopeVerifier) KeyID() (string, error)   { return "", nil }
func (v envelopeVerifier) Public() crypto.PublicKey { return v.PublicKey }

// change changes one byte of the file.
func change(t *testing.T, file string, at int) {
	t.Helper()
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	data[at] ^= 1
	require.NoError(t, os.WriteFile(file, data, 0o600))
}

// TestASignedReleaseIsVerifiedByItsKey: unchanged it is, with the key that signed it. With another
// key, or with one byte changed in any file, it is not. The same key signs the same bytes again.
func TestASignedReleaseIsVerifiedByItsKey(t *testing.T) {
	key, public := keyFile(t)
	_, another := keyFile(t)
	dir := papers(t, key)
	require.Equal(t, sums(t, dir), sums(t, papers(t, key)))
	require.NoDirExists(t, filepath.Join(dir, ".build"))
	require.True(t, whole(t, dir, public))
	require.False(t, whole(t, dir, another))
	for _, name := range []string{"a.tgz", "image/blob", "SHA256SUMS", "drydock_" + version + ".provenance.json"} {
		file := filepath.Join(dir, filepath.FromSlash(name))
		change(t, file, 0)
		require.False(t, whole(t, dir, public), name)
		change(t, file, 0)
	}
	require.True(t, whole(t, dir, public))
}

// TestTheProvenanceNamesTheCommitAndEveryFile, and its envelope is verified by the key alone, as a
// whole.
func TestTheProvenanceNamesTheCommitAndEveryFile(t *testing.T) {
	key, public := keyFile(t)
	_, another := keyFile(t)
	dir := papers(t, key)
	text, err := os.ReadFile(filepath.Join(dir, "drydock_"+version+".provenance.json"))
	require.NoError(t, err)
	var statement struct {
		Type    string `json:"_type"`
		Subject []struct {
			Name   string
			Digest map[string]string
		}
		PredicateType string
		Predicate     struct {
			BuildDefinition struct {
				BuildType            string
				ResolvedDependencies []struct {
					URI    string
					Digest map[string]string
				}
			}
			RunDetails struct{ Builder struct{ ID string } }
		}
	}
	require.NoError(t, json.Unmarshal(text, &statement))
	require.Equal(t, "https://in-toto.io/Statement/v1", statement.Type)
	require.Equal(t, "https://slsa.dev/provenance/v1", statement.PredicateType)
	require.Equal(t, "https://example.com/builder", statement.Predicate.RunDetails.Builder.ID)
	require.Equal(t, "0123456789012345678901234567890123456789", statement.Predicate.BuildDefinition.ResolvedDependencies[0].Digest["gitCommit"])
	named, files := map[string]string{}, sums(t, dir)
	for _, s := range statement.Subject {
		named[s.Name] = s.Digest["sha256"]
	}
	require.Equal(t, map[string]string{"a.tgz": files["a.tgz"], "image/blob": files["image/blob"]}, named)

	file := filepath.Join(dir, "drydock_"+version+".provenance.intoto.jsonl")
	signed := func(by ed25519.PublicKey) ([]byte, error) {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var envelope dsse.Envelope
		require.NoError(t, json.Unmarshal(text, &envelope))
		verifier, err := dsse.NewEnvelopeVerifier(envelopeVerifier{by})
		require.NoError(t, err)
		_, payload, err := verifier.VerifyAndDecode(t.Context(), &envelope)
		return payload, err
	}
	payload, err := signed(public)
	require.NoError(t, err)
	require.Equal(t, string(text), string(payload))
	_, err = signed(another)
	require.Error(t, err)
	change(t, file, len(`{"payloadType":"application/vnd.in-toto+json","payload":"`)+40)
	_, err = signed(public)
	require.Error(t, err)
}

// TestWithoutAKeyNothingIsSigned: the same files, and none that a signature would be in. With the
// key there are two more.
func TestWithoutAKeyNothingIsSigned(t *testing.T) {
	unsigned := sums(t, papers(t, ""))
	require.Len(t, unsigned, 4)
	key, _ := keyFile(t)
	signed := sums(t, papers(t, key))
	for _, name := range []string{"SHA256SUMS.sig", "drydock_" + version + ".provenance.intoto.jsonl"} {
		require.Contains(t, signed, name)
		delete(signed, name)
	}
	require.Equal(t, unsigned, signed)
}

// TestAKeyThatCannotSignIsRefused before anything is built.
func TestAKeyThatCannotSignIsRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key.pem")
	args := []string{"-root", "nowhere", "-version", version, "-url", url, "-key", file}
	require.ErrorContains(t, run(t.Context(), args), "reading the key")
	require.NoError(t, os.WriteFile(file, []byte("-----BEGIN OPENSSH PRIVATE KEY-----\n"), 0o600))
	require.ErrorContains(t, run(t.Context(), args), "is not an unencrypted private key in PEM; make one with `openssl genpkey -algorithm ed25519`")
}
