package receiver

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestAPostOfUnknownLengthFits: over a real connection, a post without Content-Length is accepted,
// for any limit on bodies.
func TestAPostOfUnknownLengthFits(t *testing.T) {
	for _, most := range []int64{defaultMaxBodyBytes, bodyMemory/2 + 1, 2 * bodyMemory} {
		b := &book{}
		url := "http://" + start(t, newServer(t, Options{MaxBodyBytes: most, Recorder: b}))
		for _, body := range []string{postOf(fire("n1")), postOf(fire("n1")) + strings.Repeat(" ", 1<<20)} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/v1/alerts", io.MultiReader(strings.NewReader(body)))
			require.NoError(t, err)
			r.Header.Set("Content-Type", "application/json")
			res, err := http.DefaultClient.Do(r)
			require.NoError(t, err)
			require.NoError(t, res.Body.Close())
			require.Equal(t, http.StatusOK, res.StatusCode, "maxBodyBytes %d", most)
		}
	}
}

func TestOneAlertFullOfCommasCostsTheOthersNothing(t *testing.T) {
	b := &book{}
	large := strings.Replace(fire("n1"), `"summary":"s"`, `"summary":"`+strings.Repeat(",", 600<<10)+`"`, 1)
	w := do(newServer(t, Options{Recorder: b}), request(http.MethodPost, "/v1/alerts", postOf(large, fire("n2"))))
	require.Equal(t, http.StatusOK, w.Code, w.Body)
	require.Equal(t, []string{"n1 firing", "n2 firing"}, b.names())
}

// TestAnAuthorityThatWasRemovedEndsOnOpenConnections: a client certificate of a removed authority
// is refused on open connections, too, within the age of a connection.
func TestAnAuthorityThatWasRemovedEndsOnOpenConnections(t *testing.T) {
	ours, theirs := newAuthority(t), newAuthority(t)
	cert, key := ours.issue(t, 2)
	ca := filepath.Join(t.TempDir(), "ca.crt")
	require.NoError(t, os.WriteFile(ca, theirs.pem, 0o600))
	s := newServer(t, Options{TLS: TLSFiles{CertFile: write(t, "crt", string(cert)), KeyFile: write(t, "key", string(key)), ClientCAFile: ca}})
	s.timeouts.age = 2 * time.Second
	url := "https://" + start(t, s)
	c := client(t, ours, &theirs)
	transport, ok := c.Transport.(*http.Transport)
	require.True(t, ok)
	transport.DisableKeepAlives = false
	began := time.Now()
	post := func() error {
		_, err := postTo(t, c, url, "", postOf(fire("n1")))
		return err
	}
	require.NoError(t, post())
	require.NoError(t, os.WriteFile(ca, ours.pem, 0o600))
	require.NoError(t, post(), "the control: the open connection is still good")
	require.Eventually(t, func() bool { return post() != nil }, time.Minute, 50*time.Millisecond)
	require.Less(t, time.Since(began), 30*time.Second)
	require.Error(t, post())
}
