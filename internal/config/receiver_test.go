package config

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/config/section"
)

// TestAGeneratedTokensFileMayComeLater: the kubelet writes it after Drydock has generated the
// token. The control: without tokenSecret the file must be there.
func TestAGeneratedTokensFileMayComeLater(t *testing.T) {
	const config = `apiVersion: drydock.dev/v1alpha1
kind: Config
receiver:
  tokenFile: token
%salertmanager: {urls: [http://a:9093]}
`
	load := func(secret string) (*Config, error) {
		file := filepath.Join(t.TempDir(), "drydock.yaml")
		require.NoError(t, os.WriteFile(file, []byte(fmt.Sprintf(config, secret)), 0o600))
		c, _, err := Load(file, Options{})
		return c, err
	}
	_, err := load("")
	require.ErrorContains(t, err, `token" does not exist`)
	c, err := load("  tokenSecret: {namespace: drydock, name: drydock-token}\n")
	require.NoError(t, err)
	require.Equal(t, &section.SecretKey{Namespace: "drydock", Name: "drydock-token", Key: "token"}, c.Receiver.TokenSecret)
	_, err = load("  tokenSecret: {namespace: Drydock, name: drydock-token}\n")
	require.ErrorContains(t, err, `receiver.tokenSecret.namespace: "Drydock" is not a namespace`)
}

// TestAGeneratedTokenNeedsItsFile, which is read when the API server does not answer.
func TestAGeneratedTokenNeedsItsFile(t *testing.T) {
	_, _, err := load("drydock.yaml", []byte(`apiVersion: drydock.dev/v1alpha1
kind: Config
receiver: {tokenSecret: {namespace: drydock, name: drydock-token}}
alertmanager: {urls: [http://a:9093]}
`), Options{SkipFiles: true})
	require.ErrorContains(t, err, "receiver.tokenFile: missing; with tokenSecret, write the file")
}
