package webhook

import (
	"crypto/tls"
	"path/filepath"

	"github.com/prometheus/client_golang/prometheus"

	"drydock.dev/drydock/internal/httpserver"
	"drydock.dev/drydock/internal/secretfile"
)

// drydock_webhook_certificate_expiry_timestamp_seconds. The certificate files are read at each
// scrape, because a renewal changes only the files. Without a usable certificate the metric has no
// series, and /readyz reports why.
type certificateEnd struct {
	desc *prometheus.Desc
	dir  string
}

var _ prometheus.Collector = &certificateEnd{}

func newCertificateEnd(dir string) *certificateEnd {
	return &certificateEnd{dir: dir, desc: prometheus.NewDesc("drydock_webhook_certificate_expiry_timestamp_seconds",
		"Unix time at which the certificate of the webhook expires.", nil, nil)}
}

// Describe implements prometheus.Collector.
func (c *certificateEnd) Describe(out chan<- *prometheus.Desc) { out <- c.desc }

// Collect implements prometheus.Collector.
func (c *certificateEnd) Collect(out chan<- prometheus.Metric) {
	var pem [2][]byte
	for i, name := range []string{"tls.crt", "tls.key"} {
		var err error
		if pem[i], err = secretfile.Read("the webhook's TLS files", filepath.Join(c.dir, name), httpserver.MaxPEM); err != nil {
			return
		}
	}
	pair, err := tls.X509KeyPair(pem[0], pem[1])
	if err != nil || pair.Leaf == nil {
		return
	}
	out <- prometheus.MustNewConstMetric(c.desc, prometheus.GaugeValue, float64(pair.Leaf.NotAfter.Unix()))
}
