package config

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	http "drydock.dev/drydock/remediations/providers/http/settings"
)

// TestTheExampleOfTheHTTPPageLoads: the values that people copy from docs/providers/http.md are
// taken, name what they mount, and serve any node.
func TestTheExampleOfTheHTTPPageLoads(t *testing.T) {
	_, blocks := examples(t, "providers/http.md")
	require.Len(t, blocks, 1)
	var values struct {
		SecretMounts []struct{ Path string } `yaml:"secretMounts"`
		Config       map[string]any
	}
	require.NoError(t, yaml.Unmarshal([]byte(blocks[0]), &values))
	c, warnings := mustLoad(t, asTheChart(t, values.Config))
	h := c.Providers["http"].(*http.HTTP)
	require.Equal(t, "/etc/drydock/"+values.SecretMounts[0].Path, h.SigningKeyFile)
	require.Empty(t, Capabilities(c)["reboot"])
	require.NotEmpty(t, Capabilities(c)["replace"], "it has no replace.url")
	require.True(t, h.Testifies())
	serves := h.Serves()
	require.Equal(t, "any Node", serves.Serves())
	require.NotContains(t, lines(warnings), "providers.http")
}

// TestAReceiverWithoutACredentialIsWarnedOf, and one over plain http; not one on this machine.
func TestAReceiverWithoutACredentialIsWarnedOf(t *testing.T) {
	for keys, says := range map[string]string{
		`reboot: {url: "https://machines.example/a"}`:                                                            "providers.http.reboot.url: gets requests without authentication",
		`reboot: {url: "http://machines.example/a"}, signingKeyFile: k`:                                          "providers.http.reboot.url: is not https",
		`reboot: {url: "https://machines.example/a"}, signingKeyFile: k`:                                         "",
		`reboot: {url: "https://machines.example/a"}, httpConfig: {authorization: {credentials_file: t}}`:        "",
		`reboot: {url: "https://machines.example/a"}, httpConfig: {tls_config: {cert_file: c, key_file: k}}`:     "",
		`reboot: {url: "http://127.0.0.1:8080/a"}`:                                                               "",
		`replace: {url: "https://a.example/"}, observe: {url: "http://machines.example/b"}, signingKeyFile: "k"`: "providers.http.observe.url: is not https",
	} {
		_, warnings := mustLoad(t, base+"providers: {http: {"+keys+"}}\n")
		if says == "" {
			require.NotContains(t, lines(warnings), "providers.http.", keys)
		} else {
			require.Contains(t, lines(warnings), says, keys)
		}
	}
}
