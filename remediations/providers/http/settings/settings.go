// Package settings has the section providers.http of the configuration: a receiver that acts on
// machines.
package settings

import (
	_ "embed"
	"net/url"
	"time"

	promconfig "github.com/prometheus/common/config"
	k8slabels "k8s.io/apimachinery/pkg/labels"

	"drydock.dev/drydock/internal/config/section"
	"drydock.dev/drydock/remediations"
)

//go:embed schema.json
var schema string

// Section is the key providers.http of the configuration.
var Section = section.Section{Key: "http", Schema: schema, Steps: map[string]string{"reboot": ".reboot", "powerOff": ".powerOff", "replace": ".replace"}, Read: section.Declared[HTTP]()}

// HTTP is the content of providers.http.
type HTTP struct {
	// Reboot, PowerOff, Replace and Observe are the receiver's places for each kind of request. Nil
	// means no requests of this kind.
	Reboot   *Place `json:"reboot"`
	PowerOff *Place `json:"powerOff"`
	Replace  *Place `json:"replace"`
	Observe  *Place `json:"observe"`
	// SigningKeyFile is the path of a file. All its bytes are the signing key. Empty means that
	// requests are not signed.
	SigningKeyFile string                      `json:"signingKeyFile" as:"file"`
	HTTPConfig     promconfig.HTTPClientConfig `json:"httpConfig"`
	// Timeout limits one request.
	Timeout time.Duration `json:"timeout" most:"1m, a receiver that takes longer answers 202 at once"`
	// NodeSelector selects the Nodes that the provider serves. Nil selects all Nodes.
	NodeSelector k8slabels.Selector `json:"nodeSelector"`
}

// Place is the receiver's URL for one kind of request.
type Place struct {
	URL string `json:"url"`
	to  *url.URL
}

// URLs returns the configured URLs by reboot, powerOff, replace and observe.
func (c *HTTP) URLs() map[string]string {
	urls := map[string]string{}
	c.each(func(key string, p *Place) { urls[key] = p.URL })
	return urls
}

func (c *HTTP) each(do func(key string, p *Place)) {
	for _, one := range []struct {
		key string
		*Place
	}{{"reboot", c.Reboot}, {"powerOff", c.PowerOff}, {"replace", c.Replace}, {"observe", c.Observe}} {
		if one.Place != nil {
			do(one.key, one.Place)
		}
	}
}

// Check implements section.Checker.
func (c *HTTP) Check(r section.Reader, at section.Pointer) {
	c.each(func(key string, p *Place) {
		if !r.Faulty(at.To(key, "url")) {
			if p.to = r.URL(at.To(key, "url"), p.URL); p.to != nil {
				p.URL = p.to.String()
			}
		}
	})
	if c.Reboot == nil && c.PowerOff == nil && c.Replace == nil {
		r.Fault(at, "has no reboot, powerOff or replace, so Drydock would never use it; add reboot.url, powerOff.url or replace.url")
	}
	if c.PowerOff != nil && c.Observe == nil {
		r.Fault(at.To("powerOff"), "needs observe, because only the receiver can confirm that the machine is off; add observe.url, or remove powerOff")
	}
	if c.Replace != nil && c.Observe == nil {
		r.Fault(at.To("replace"), "needs observe, because only the receiver can confirm that the old machine is gone and a new one exists; add observe.url, or remove replace")
	}
}

// Serves implements section.Provider.
func (c *HTTP) Serves() remediations.Provider {
	out := remediations.Provider{NodeSelector: c.NodeSelector}
	c.each(func(key string, _ *Place) {
		if key != "observe" {
			out.Steps = append(out.Steps, key)
		}
	})
	return out
}

// Testifies implements section.Testifier. It is true if observe.url is configured.
func (c *HTTP) Testifies() bool { return c.Observe != nil }

// Warn implements section.Warner.
func (c *HTTP) Warn(at section.Pointer, say func(p section.Pointer, format string, args ...any)) {
	h := c.HTTPConfig
	proves := c.SigningKeyFile != "" || h.BasicAuth != nil || h.Authorization != nil || h.OAuth2 != nil || h.HTTPHeaders != nil || h.TLSConfig.CertFile != "" || h.TLSConfig.Cert != ""
	c.each(func(key string, p *Place) {
		switch {
		case p.to == nil || section.Loopback(p.to.Hostname()):
		case !proves:
			say(at.To(key, "url"), "gets requests without authentication: set signingKeyFile, or authorization, basic_auth or a client certificate in httpConfig, and let the receiver check it")
		case p.to.Scheme != "https":
			say(at.To(key, "url"), "is not https, so requests and credentials are sent unencrypted")
		}
	})
}
