package webhooks

import (
	"encoding/base64"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestTheExampleOfTheSpecification: the signature is the one that the specification's own libraries
// test themselves by.
func TestTheExampleOfTheSpecification(t *testing.T) {
	t.Parallel()
	key, err := base64.StdEncoding.DecodeString("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	require.NoError(t, err)
	h := http.Header{}
	Sign(h, "msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`), key)
	require.Equal(t, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=", h.Get("webhook-signature"))
	require.Equal(t, "1614265330", h.Get("webhook-timestamp"))
	require.Equal(t, "msg_p5jXN8AQM9LWM0D4loKWxJek", h.Get("webhook-id"))

	h = http.Header{}
	Sign(h, "msg_1", time.Unix(1614265330, 0), nil, nil)
	require.Len(t, h, 2, "without a key there is no signature")
}

// TestAKeyIsTheBytesOfItsFile, with a line break at its end, and no text that stands for a key.
func TestAKeyIsTheBytesOfItsFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "key")
	write := func(text string) { require.NoError(t, os.WriteFile(file, []byte(text), 0o600)) }
	write("\x00a key\n")
	key, err := ReadKey(file)
	require.NoError(t, err)
	require.Equal(t, "\x00a key\n", string(key))
	for content, says := range map[string]string{"": "is empty", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw": "decode what follows whsec_"} {
		write(content)
		_, err := ReadKey(file)
		require.ErrorContains(t, err, says)
		require.NotContains(t, err.Error(), "MfKQ")
	}
	_, err = ReadKey(file + "x")
	require.Error(t, err)
	key, err = ReadKey("")
	require.NoError(t, err)
	require.Nil(t, key)
}
