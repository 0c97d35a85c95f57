package probe

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/require"
)

func TestAKeyFileMustHoldAKey(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"empty":      {"", "the file is empty; make a key with: head -c 32 /dev/urandom | base64"},
		"blank":      {" \n\t\n", "the file is empty; make a key with"},
		"short":      {"secret\n", "the key in line 1 has 6 characters instead of at least 32; make a key with"},
		"one short":  {string(oldKey) + "\nsecret\n", "the key in line 2 has 6 characters"},
		"three":      {strings.Repeat(string(oldKey)+"\n", 3), "the file has more than 2 keys"},
		"an archive": {strings.Repeat("x", maxFileBytes+1), "the file is longer than 4096 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ReadKeys(writeKeys(t, "", c.text))
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), string(oldKey))
		})
	}
	_, err := ReadKeys("/nonexistent/key")
	require.ErrorContains(t, err, "make a key with")
}

// TestAKeyIsChangedWithoutALostProbe: first all agents get the new key, then all sign with it, and
// then the old key is removed.
func TestAKeyIsChangedWithoutALostProbe(t *testing.T) {
	stages := []string{
		string(oldKey), string(oldKey) + "\n" + string(newKey) + "\n", string(newKey) + "\r\n" + string(oldKey), string(newKey),
	}
	var log bytes.Buffer
	logger := funcr.New(func(prefix, args string) { log.WriteString(prefix + args + "\n") }, funcr.Options{})
	fileA, fileB := writeKeys(t, "", stages[0]), writeKeys(t, "", stages[0])
	a, err := ReadKeys(fileA)
	require.NoError(t, err)
	b, err := ReadKeys(fileB)
	require.NoError(t, err)
	_, to := serve(t, func(o *ServerOptions) { o.Keys = b.Current })
	probe := func() {
		for _, p := range Protos() {
			w := asker(func(c *Client) { c.Keys = a.Current }).Probe(t.Context(), p, to, "b")
			require.NoError(t, w.Why)
		}
	}
	for _, stage := range stages {
		writeKeys(t, fileA, stage)
		a.reload(logger)
		probe() // one agent has the new file before the other
		writeKeys(t, fileB, stage)
		b.reload(logger)
		probe()
	}
	require.Equal(t, []Key{newKey}, a.Current())
	require.NotContains(t, log.String(), "0123456789abcdef", "no key is logged")
}

func TestTheKeyFileIsReadAgain(t *testing.T) {
	file := writeKeys(t, "", string(oldKey))
	k, err := ReadKeys(file)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { k.Watch(ctx, time.Millisecond, logr.Discard()); close(ended) }()
	writeKeys(t, file, string(newKey))
	require.Eventually(t, func() bool { return string(k.Current()[0]) == string(newKey) }, time.Minute, time.Millisecond)
	cancel()
	<-ended
}

func TestTheLastGoodKeysStay(t *testing.T) {
	var lines []string
	logger := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
	file := writeKeys(t, "", string(oldKey))
	k, err := ReadKeys(file)
	require.NoError(t, err)
	require.NoError(t, os.Truncate(file, 0))
	for range 3 {
		k.reload(logger)
	}
	require.Equal(t, []Key{oldKey}, k.Current())
	require.Len(t, lines, 1, "said once")
	writeKeys(t, file, string(newKey))
	k.reload(logger)
	require.Equal(t, []Key{newKey}, k.Current())
}
