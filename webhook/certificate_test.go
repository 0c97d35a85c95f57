package webhook

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
)

// certificate writes a certificate that is valid until end into the folder.
func certificate(t *testing.T, dir string, end time.Time) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: end}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	private, err := x509.MarshalECPrivateKey(key)
	require.NoError(t, err)
	for name, block := range map[string]*pem.Block{
		"tls.crt": {Type: "CERTIFICATE", Bytes: der}, "tls.key": {Type: "EC PRIVATE KEY", Bytes: private},
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600))
	}
}

func TestTheCertificatesEndIsThatOfTheFile(t *testing.T) {
	const name = "drydock_webhook_certificate_expiry_timestamp_seconds"
	dir := t.TempDir()
	reg := prometheus.NewRegistry()
	_, err := newMetrics(reg, dir)
	require.NoError(t, err)
	series := func() int {
		n, err := testutil.GatherAndCount(reg, name)
		require.NoError(t, err)
		return n
	}
	require.Zero(t, series(), "without a certificate nothing is known of its end")
	for _, end := range []int64{1800000000, 1900000000} { // the second is the renewed one
		certificate(t, dir, time.Unix(end, 0))
		require.NoError(t, testutil.GatherAndCompare(reg, strings.NewReader(fmt.Sprintf(`
# HELP drydock_webhook_certificate_expiry_timestamp_seconds Unix time at which the certificate of the webhook expires.
# TYPE drydock_webhook_certificate_expiry_timestamp_seconds gauge
drydock_webhook_certificate_expiry_timestamp_seconds %d
`, end)), name))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tls.crt"), []byte("half a fi"), 0o600))
	require.Zero(t, series(), "what cannot be served has no end")
}
