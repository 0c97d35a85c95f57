package redact

import (
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io/fs"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAKeyInOtherSpellings: what quotes a request may have escaped it first.
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

// TestAKeyThatWasCutOff: what is read of an answer is bounded, and its end may be the beginning of a key.
func TestAKeyThatWasCutOff(t *testing.T) {
	t.Parallel()
	k := Keyring{Mark: "[API key]", Most: 20}
	k.Add("0123456789abcdef")
	require.Equal(t, "it says ", k.Hide("it says 0123456789abcde"))
	require.Equal(t, "it says ", k.Hide("it says 01234567"))
	require.Equal(t, "it says 0123456", k.Hide("it says 0123456"), "so little is no secret")
	require.Equal(t, "it says 01234567 and goes on", k.Hide("it says 01234567 and goes on"), "the control: nothing was cut off")
	require.LessOrEqual(t, len(k.Text("a text that is longer than twenty bytes")), 20+len("..."))
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
	require.Len(t, k.forms, kept)
	k.Add("one-more")
	require.Len(t, k.forms, kept, "it does not grow for ever")
}

// TestAnErrorIsFoundAndNotShown: what a caller looks for is found in an error whose own text stays in.
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
