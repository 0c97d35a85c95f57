// Package webhooks signs Drydock's POST requests by the Standard Webhooks specification.
package webhooks

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"drydock.dev/drydock/internal/secretfile"
)

// maxKey is in bytes. The specification allows 24 to 64.
const maxKey = 4 << 10

// ReadKey reads a key from its file. If path is empty, it returns nil and no error, and requests
// are not signed.
func ReadKey(path string) ([]byte, error) {
	if path == "" {
		return nil, nil
	}
	key, err := secretfile.Read("the signing key", path, maxKey)
	switch {
	case err != nil:
		return nil, err
	case len(key) == 0:
		return nil, fmt.Errorf("the signing key in %s is empty", path)
	case bytes.HasPrefix(key, []byte("whsec_")):
		return nil, fmt.Errorf("the file %s has the text whsec_... in place of the key: decode what follows whsec_ from Base64, and write that into the file", path)
	}
	return key, nil
}

// Sign sets the headers of a request with that body. If key is nil, it sets no signature.
func Sign(h http.Header, id string, at time.Time, body, key []byte) {
	stamp := strconv.FormatInt(at.Unix(), 10)
	h.Set("Webhook-Id", id)
	h.Set("Webhook-Timestamp", stamp)
	if key != nil {
		mac := hmac.New(sha256.New, key)
		_, _ = fmt.Fprintf(mac, "%s.%s.%s", id, stamp, body)
		h.Set("Webhook-Signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
}
