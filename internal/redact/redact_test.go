package redact

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/oauth2"
)

// TestAKeyInOtherSpellings: a program that quotes a request may have escaped it.
func TestAKeyInOtherSpellings(t *testing.T) {
	t.Parallel()
	const key = `a"b\c<d>e&f+g/h%i'j`
	k := Keyring{Mark: "[API key]"}
	k.Add(key)
	inJSON, err := json.Marshal(key)
	require.NoError(t, err)
	for _, form := range []string{key, string(inJSON), fmt.Sprintf("%q", key), html.EscapeString(key), url.QueryEscape(key), url.PathEscape(key)} {
		require.Contains(t, []string{"[API key]", `"[API key]"`}, k.Hide(form))
	}
}

// TestNoPartOfAKeyIsShown: a program that quotes the key may cut it, fold it, or put other text
// around it.
func TestNoPartOfAKeyIsShown(t *testing.T) {
	t.Parallel()
	const key = "Zq8/+wRk3=tYp1x-Mv72_bHc9dLs6Fg4Ej5An0KuWo"
	k := Keyring{Mark: "[API key]"}
	k.Add(key)
	encoded := base64.StdEncoding.EncodeToString([]byte("drydock:" + key + "@host"))
	asJSON := func(s string) string {
		text, err := json.Marshal(map[string]string{"sent": s})
		require.NoError(t, err)
		return string(text)
	}
	dotNet := ""
	for _, c := range key {
		dotNet += fmt.Sprintf(`\u%04X`, c)
	}
	entities := ""
	for _, c := range key {
		entities += fmt.Sprintf("&#x%x;", c)
	}
	for name, text := range map[string]string{
		"whole":             "sent " + key + " and more",
		"cut at its end":    "sent " + key[:20],
		"cut at both ends":  "sent ..." + key[11:30] + "...",
		"just eight":        "sent " + key[5:13] + " and more",
		"PHP":               "sent " + strings.ReplaceAll(key, "/", `\/`),
		".NET":              "sent " + strings.ReplaceAll(key, "+", `\u002B`),
		".NET, all of it":   "sent " + dotNet,
		"octal":             "sent " + strings.ReplaceAll(key, "+", `\053`),
		"entities":          "sent " + entities,
		"percent":           "sent " + url.QueryEscape(key),
		"percent, twice":    "sent " + url.QueryEscape(url.QueryEscape(key)),
		"JSON in JSON":      asJSON(asJSON(asJSON(strings.ReplaceAll(key, "/", `\/`)))),
		"hexadecimal":       "sent " + hex.EncodeToString([]byte(key)),
		"HEXADECIMAL":       "sent " + strings.ToUpper(hex.EncodeToString([]byte("x"+key))),
		"Base64":            "sent " + encoded,
		"Base64, URL":       "sent " + base64.URLEncoding.EncodeToString([]byte("dd:"+key)),
		"Base64, folded":    "sent " + encoded[:19] + "\r\n " + encoded[19:],
		"folded":            "sent " + key[:7] + "\r\n\t" + key[7:14] + "\n" + key[14:],
		"in invisible text": "sent " + strings.Join(strings.Split(key, ""), "\u200b"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hidden := k.Hide(text)
			require.Contains(t, hidden, "[API key]")
			if name != "JSON in JSON" {
				require.Contains(t, hidden, "sent ")
			}
			// The rest of the key, in any spelling, has fewer than eight characters.
			levels, whole := unescaped(hidden)
			require.True(t, whole)
			for _, level := range levels {
				_, found := mask(level, "", k.secrets)
				require.False(t, found, level)
			}
		})
	}
	for _, harmless := range []string{"sent " + key[:7] + " and more", "the token was refused", "100% of it", `C:\new\u00`, "&lt;html&gt; 401 %41", ""} {
		require.Equal(t, harmless, k.Hide(harmless), "the control")
	}
	deep := key
	for range 3 * maxEscapes {
		deep = strings.ReplaceAll(strings.ReplaceAll(deep, "%", "%25"), "/", "%2F")
	}
	require.NotContains(t, k.Hide(deep), key[20:28])
}

// TestAShortKeyIsHiddenAsAWhole: its parts are in every text, so they are not hidden.
func TestAShortKeyIsHiddenAsAWhole(t *testing.T) {
	t.Parallel()
	k := Keyring{Mark: "[API key]"}
	k.AddPassword("root", "calvin")
	require.Equal(t, "[API key] calvi", k.Hide("calvin calvi"))
	require.Equal(t, "Basic [API key]", k.Hide("Basic "+base64.StdEncoding.EncodeToString([]byte("root:calvin"))))
}

// TestATextIsBounded: before the search for secrets.
func TestATextIsBounded(t *testing.T) {
	t.Parallel()
	k := Keyring{Mark: "[API key]", Most: 20}
	require.LessOrEqual(t, len(k.Text("a text that is longer than twenty bytes")), 20+len("…"))
	k.Add("0123456789abcdef")
	require.LessOrEqual(t, len(k.Hide(strings.Repeat("x", 4<<20))), maxRead)
	require.Equal(t, "xxxxxxxxxxxxxxxxxxxx…", k.Error(errors.New(strings.Repeat("x", 4<<20))).Error())
}

// TestTheSecretsOfARequestAreLearntAsTheyAreSent: a library may read the secrets itself.
func TestTheSecretsOfARequestAreLearntAsTheyAreSent(t *testing.T) {
	t.Parallel()
	var k Keyring
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(server.Close)
	send := func(name, value string) {
		req, err := http.NewRequestWithContext(k.Trace(t.Context()), http.MethodGet, server.URL, http.NoBody)
		require.NoError(t, err)
		req.Header.Set(name, value)
		resp, err := http.DefaultTransport.RoundTrip(req)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
	}
	send("Authorization", "Bearer the-bearer-token")
	send("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte("drydock:the-password")))
	send("X-Api-Key", "the-key-of-the-api")
	send("Accept", "application/json")
	require.Equal(t, "|||Bearer|drydock|application/json", k.Hide("the-bearer-token|the-password|the-key-of-the-api|Bearer|drydock|application/json"))
}

// TestATokenEndpointsOwnTextIsNotQuoted: it may repeat the secret that it refuses.
func TestATokenEndpointsOwnTextIsNotQuoted(t *testing.T) {
	t.Parallel()
	refused := &oauth2.RetrieveError{
		Response: &http.Response{StatusCode: 401, Status: "401 the-secret"}, Body: []byte("the-secret"), ErrorCode: "invalid_client", ErrorDescription: "the-secret",
	}
	err := TokenRefused(fmt.Errorf("asking: %w", refused))
	require.EqualError(t, err, "the OAuth 2 token endpoint answered 401 Unauthorized, invalid_client; check client_id, the client's secret and token_url")
	refused.ErrorCode = "the-secret"
	require.NotContains(t, TokenRefused(refused).Error(), "the-secret")
	require.NoError(t, TokenRefused(errors.New("the-secret")))
	require.NoError(t, TokenRefused(nil))
}

// FuzzHide: whatever text is around a secret, eight characters of it are never shown, and a text
// without it is not changed.
func FuzzHide(f *testing.F) {
	for _, seed := range []string{"", "%2", `\u00`, "&#x", "%25", "\xff\xfe", `\\`, "0123456"} {
		f.Add(seed, seed)
	}
	f.Fuzz(func(t *testing.T, before, after string) {
		const key = "Zq8/+wRk3=tYp1x%41Mv72"
		k := Keyring{Mark: "*"}
		k.Add(key)
		hidden := k.Hide(before + key + after)
		if len(before) > maxRead-len(key) {
			return
		}
		for i := 0; i+part <= len(key); i++ {
			require.NotContains(t, hidden, key[i:i+part])
		}
		if s := before + after; len(s) <= maxRead && !strings.ContainsAny(s, "%&\\") && len(s) < part {
			require.Equal(t, s, k.Hide(s))
		}
	})
}

// TestAKeyThatChangedIsStillASecret: an answer to the old key may come after the new one is in use.
func TestAKeyThatChangedIsStillASecret(t *testing.T) {
	t.Parallel()
	k := Keyring{Mark: "[API key]"}
	for i := range kept {
		k.Add(fmt.Sprintf("key-number-%d", i))
		k.Add(fmt.Sprintf("key-number-%d", i))
	}
	require.Equal(t, "[API key] [API key]", k.Hide("key-number-0 key-number-3"))
	require.Len(t, k.secrets, kept)
	k.Add("one-more")
	require.Len(t, k.secrets, kept, "it does not grow for ever")
}

// TestAKeyThatIsUsedAgainIsStillASecret: the token of each request changes, and its API key does
// not.
func TestAKeyThatIsUsedAgainIsStillASecret(t *testing.T) {
	t.Parallel()
	k := Keyring{Mark: "[API key]"}
	k.Add("used-only-once")
	for i := range 2 * kept {
		k.Add("the-same-each-time")
		k.Add(fmt.Sprintf("token-number-%d", i))
	}
	require.Equal(t, "[API key] used-only-once", k.Hide("the-same-each-time used-only-once"), "the control is forgotten")
}

// TestAllSecretsOfARequestAreHidden, as many as its headers have.
func TestAllSecretsOfARequestAreHidden(t *testing.T) {
	t.Parallel()
	k := Keyring{Mark: "[secret]"}
	for i := range 16 {
		k.Header(fmt.Sprintf("X-Key-%d", i), fmt.Sprintf("the-value-%c%c%c%c%c%c%c%c", 'a'+i, 'c'+i, 'b'+i, 'e'+i, 'd'+i, 'f'+i, 'h'+i, 'g'+i))
	}
	require.Equal(t, "[secret]", k.Hide("the-value-acbedfhg"))
}

// TestAnErrorIsFoundAndNotShown: errors.Is finds the original error, whose text is not shown.
func TestAnErrorIsFoundAndNotShown(t *testing.T) {
	t.Parallel()
	var k Keyring
	k.Add("")
	k.Add("hidden-away")
	err := k.Error(fmt.Errorf("hidden-away\n%w", fs.ErrNotExist))
	require.EqualError(t, err, "file does not exist")
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NoError(t, errors.Unwrap(err))
	require.NoError(t, k.Error(nil))
}
