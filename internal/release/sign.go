package main

import (
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"os"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"
)

const (
	// statementType is the media type of an in-toto statement. The signature covers the type, too.
	statementType = "application/vnd.in-toto+json"
	source        = "git+https://github.com/drydock-dev/drydock"
)

func readKey(file string) (ed25519.PrivateKey, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the key: %w", err)
	}
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "PRIVATE KEY" {
		return nil, fmt.Errorf("the key %s is not an unencrypted private key in PEM; make one with `openssl genpkey -algorithm ed25519`", file)
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("reading the key %s: %w", file, err)
	}
	signs, ok := key.(ed25519.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("the key %s is a %T and not an Ed25519 key; make one with `openssl genpkey -algorithm ed25519`", file, key)
	}
	return signs, nil
}

// provenance writes the commit and the build of all release files, as an in-toto statement with
// SLSA's predicate.
func (r *release) provenance(context.Context) error {
	var subjects []m
	err := r.files(func(name, sum string) { subjects = append(subjects, m{"name": name, "digest": m{"sha256": sum}}) })
	if err != nil {
		return err
	}
	info, err := buildinfo.ReadFile(r.built[0].file)
	if err != nil {
		return fmt.Errorf("reading which version of Go built %s: %w", r.built[0].file, err)
	}
	var platforms []string
	for _, p := range r.platforms {
		platforms = append(platforms, p.String())
	}
	text, err := json.MarshalIndent(m{
		"_type": "https://in-toto.io/Statement/v1", "subject": subjects,
		"predicateType": "https://slsa.dev/provenance/v1",
		"predicate": m{
			"buildDefinition": m{
				"buildType":            "https://drydock.dev/release/v1",
				"externalParameters":   m{"version": r.version, "url": r.url, "platforms": platforms},
				"internalParameters":   m{"go": info.GoVersion},
				"resolvedDependencies": []m{{"uri": source + "@refs/tags/" + r.version, "digest": m{"gitCommit": r.commit}}},
			},
			"runDetails": m{"builder": m{"id": r.builder}},
		},
	}, "", "  ")
	if err != nil {
		return fmt.Errorf("writing the provenance: %w", err)
	}
	r.statement = append(text, '\n')
	return os.WriteFile(r.path("drydock_"+r.version+".provenance.json"), r.statement, 0o644)
}

func (r *release) sign(ctx context.Context) error {
	if r.key == nil {
		return nil
	}
	sums, err := os.ReadFile(r.path("SHA256SUMS"))
	if err != nil {
		return fmt.Errorf("signing the checksums: %w", err)
	}
	signature := base64.StdEncoding.EncodeToString(ed25519.Sign(r.key, sums))
	if err := os.WriteFile(r.path("SHA256SUMS.sig"), []byte(signature+"\n"), 0o644); err != nil {
		return err
	}
	signer, err := dsse.NewEnvelopeSigner(envelopeKey{r.key})
	if err != nil {
		return fmt.Errorf("signing the provenance: %w", err)
	}
	envelope, err := signer.SignPayload(ctx, statementType, r.statement)
	if err != nil {
		return fmt.Errorf("signing the provenance: %w", err)
	}
	text, err := json.Marshal(envelope)
	if err != nil {
		return fmt.Errorf("signing the provenance: %w", err)
	}
	return os.WriteFile(r.path("drydock_"+r.version+".provenance.intoto.jsonl"), append(text, '\n'), 0o644)
}

type envelopeKey struct{ key ed25519.PrivateKey }

func (k envelopeKey) Sign(_ context.Context, data []byte) ([]byte, error) {
	return ed25519.Sign(k.key, data), nil
}

// KeyID returns the fingerprint of the public key. Verifiers find the key by it.
func (k envelopeKey) KeyID() (string, error) { return dsse.SHA256KeyID(k.key.Public()) }
