package redfish

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"drydock.dev/drydock/internal/secretfile"
)

const (
	// maxCA and maxSecret are in bytes. maxSecret is for the file with the user name, and for the
	// file with the password.
	maxCA     = 1 << 20
	maxSecret = 4 << 10
)

type trust struct {
	roots *x509.CertPool
	pin   []byte
}

func newTrust(in BMC) (trust, error) {
	switch {
	case (in.CAFile == "") == (in.Fingerprint == ""):
		return trust{}, errors.New("exactly one of caFile and fingerprint must be set, because Drydock always checks the certificate")
	case in.Fingerprint != "":
		pin, err := hex.DecodeString(strings.ReplaceAll(in.Fingerprint, ":", ""))
		if err != nil || len(pin) != sha256.Size {
			return trust{}, fmt.Errorf("the fingerprint must be a SHA-256 in hexadecimal, 64 digits")
		}
		return trust{pin: pin}, nil
	}
	file, err := secretfile.Read("the file with the BMC's certificate authority", in.CAFile, maxCA)
	if err != nil {
		return trust{}, err
	}
	t := trust{roots: x509.NewCertPool()}
	if !t.roots.AppendCertsFromPEM(file) {
		return trust{}, fmt.Errorf("reading the file with the BMC's certificate authority %s: the file has no certificate", in.CAFile)
	}
	return t, nil
}

type errPin struct{ got string }

func (e errPin) Error() string {
	return "the certificate's SHA-256 is " + e.got + ", which is not the configured fingerprint"
}

// The certificate is always checked, against the configured authority or the pinned fingerprint.
func (t trust) tls() *tls.Config {
	c := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: t.roots}
	if t.pin == nil {
		return c
	}
	c.InsecureSkipVerify = true // no chain needs verification, because the certificate itself is pinned
	c.VerifyConnection = func(state tls.ConnectionState) error {
		if len(state.PeerCertificates) == 0 {
			return errPin{"absent"}
		}
		if sum := sha256.Sum256(state.PeerCertificates[0].Raw); string(sum[:]) != string(t.pin) {
			return errPin{hex.EncodeToString(sum[:])}
		}
		return nil
	}
	return c
}

// credentials are read from their files for each call.
type credentials struct{ user, password string }

func (c credentials) key() [sha256.Size]byte {
	return sha256.Sum256([]byte(c.user + "\x00" + c.password))
}

func (b *bmc) credentials() (credentials, error) {
	user, err := secretfile.Token("the file with the BMC's user name", b.UsernameFile, maxSecret)
	if err != nil {
		return credentials{}, err
	}
	password, err := secretfile.Token("the file with the BMC's password", b.PasswordFile, maxSecret)
	if err != nil {
		return credentials{}, err
	}
	if strings.ContainsAny(user, ":\r\n") {
		return credentials{}, fmt.Errorf("reading the file with the BMC's user name %s: the name has a colon or a line break", b.UsernameFile)
	}
	return credentials{user, password}, nil
}
