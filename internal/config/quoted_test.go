package config

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNoFaultQuotesASecret: faults go to a person's screen, to a CI job's log, and by `drydock run`
// to the pod's log. Each case has a secret in a place where its parser or its decoder quotes what
// it cannot read.
func TestNoFaultQuotesASecret(t *testing.T) {
	const secret = "hunter2-hunter2"
	for name, tc := range map[string]struct{ alertmanager, says string }{
		"a proxy's password with a percent sign": {`httpConfig: {proxy_url: "http://u:hunter2-hunter2%zz@proxy:3128"}`, "alertmanager.httpConfig: is not a valid http_config of Prometheus: a value cannot be read, for example a proxy_url that is not a URL"},
		"a proxy's password with a space":        {`httpConfig: {proxy_url: "http://u:hunter2-hunter2 x@proxy:3128"}`, "alertmanager.httpConfig: is not a valid http_config of Prometheus: a value cannot be read"},
		"a proxy of the token's endpoint":        {`httpConfig: {oauth2: {client_id: c, token_url: "http://t", proxy_url: "http://u:hunter2-hunter2%zz@proxy:3128"}}`, "a value cannot be read"},
		"text below basic_auth":                  {`httpConfig: {basic_auth: hunter2-hunter2}`, "alertmanager.httpConfig.basic_auth: has text, but Prometheus' http_config requires another type here"},
		"text below authorization":               {`httpConfig: {authorization: "Bearer hunter2-hunter2"}`, "alertmanager.httpConfig.authorization: has text"},
		"short text below authorization":         {`httpConfig: {authorization: "hunter2"}`, "alertmanager.httpConfig.authorization: has text"},
		"a list of passwords":                    {`httpConfig: {basic_auth: {username: u, password: [hunter2-hunter2]}}`, "alertmanager.httpConfig.basic_auth.password[0]: has a list"},
		"text in the place of all of it":         {`httpConfig: "Bearer hunter2-hunter2"`, "alertmanager.httpConfig: text is not a mapping"},
		"a version of TLS":                       {`httpConfig: {tls_config: {min_version: hunter2-hunter2}}`, "alertmanager.httpConfig: is not a valid http_config of Prometheus"},
		"a token in a query":                     {`urls: ["http://am:9093/?token=hunter2-hunter2"]`, `alertmanager.urls[0]: "http://am:9093/..." has a query or a fragment`},
		"a token in a fragment":                  {`urls: ["http://am:9093#hunter2-hunter2"]`, `alertmanager.urls[0]: "http://am:9093/..." has a query or a fragment`},
		"a token in a path":                      {`urls: ["ftp://am:9093/services/hunter2-hunter2"]`, `alertmanager.urls[0]: "ftp://am:9093/..." is neither http nor https`},
		"a token in what is not a URL":           {`urls: ["am:9093/?token=hunter2-hunter2"]`, `alertmanager.urls[0]: "am:9093/..." is not a URL`},
		"a password in what is not a URL":        {`urls: ["http://u:hunter2-hunter2%zz@am:9093"]`, `alertmanager.urls[0]: has credentials in the URL`},
		"a port":                                 {`urls: ["http://am:0/hunter2-hunter2"]`, `"http://am:0/..." has no host or an invalid port`},
		"a URL in the place of a list":           {`urls: "http://u:hunter2-hunter2@am:9093"`, "alertmanager.urls: text is not a list"},
		"an alias for a password":                {`httpConfig: {basic_auth: {username: u, password: *hunter2-hunter2}}`, "document: is not YAML: the alias has no anchor"},
		"a password of digits":                   {`httpConfig: {basic_auth: {username: u, password: !!int hunter2-hunter2}}`, "cannot be read as a number"},
		"a tag for a password":                   {`httpConfig: {basic_auth: {username: u, password: !hunter2-hunter2 x}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			text := "apiVersion: drydock.dev/v1alpha1\nkind: Config\nreceiver: {tokenFile: token}\nalertmanager:\n  " + tc.alertmanager + "\n"
			if !strings.HasPrefix(tc.alertmanager, "urls") {
				text += "  urls: [http://a:9093]\n"
			}
			_, warnings, err := load("drydock.yaml", []byte(text), Options{SkipFiles: true})
			said := lines(warnings)
			if err != nil {
				said += err.Error()
			}
			require.Contains(t, said, tc.says)
			require.NotContains(t, said, secret[:7])
		})
	}
}
