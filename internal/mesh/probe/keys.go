package probe

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"

	"drydock.dev/drydock/internal/secretfile"
)

// Key is a secret that the agents share.
type Key []byte

const (
	minKeyBytes  = 32
	maxKeys      = 2
	maxFileBytes = 4 << 10
	howToMakeOne = "make a key with: head -c 32 /dev/urandom | base64"
)

// Keys are the keys in a file, one per line. There are two during a rotation: the first signs, and
// both are accepted.
//
// If the file becomes unusable, the last valid keys stay in use, and that is logged once. A mistake
// in a rotation must not look like a failure of the whole mesh.
type Keys struct {
	path    string
	current atomic.Pointer[[]Key]
	trouble secretfile.Trouble
}

// ReadKeys reads the file. It returns an error if the file has no valid key.
func ReadKeys(path string) (*Keys, error) {
	keys, err := readKeys(path)
	if err != nil {
		return nil, err
	}
	k := &Keys{path: path}
	k.current.Store(&keys)
	return k, nil
}

// Current returns the valid keys, at least one.
func (k *Keys) Current() []Key { return *k.current.Load() }

// Watch reads the file at regular intervals until ctx ends. It compares the content, because a
// comparison of times or sizes could miss a change.
func (k *Keys) Watch(ctx context.Context, every time.Duration, log logr.Logger) {
	ticks := time.NewTicker(every)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
			k.reload(log)
		}
	}
}

func (k *Keys) reload(log logr.Logger) {
	keys, err := readKeys(k.path)
	k.trouble.Log(log, err, "the key file is unusable; the agent continues with the last valid keys")
	if err == nil && !slices.EqualFunc(keys, k.Current(), func(a, b Key) bool { return bytes.Equal(a, b) }) {
		k.current.Store(&keys)
		log.Info("the agent uses the new keys of the key file", "keys", len(keys))
	}
}

func readKeys(path string) ([]Key, error) {
	content, err := secretfile.Read("the key file", path, maxFileBytes)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%w; %s", err, howToMakeOne)
	case err != nil:
		return nil, err
	}
	keys, err := parseKeys(content)
	if err != nil {
		return nil, fmt.Errorf("reading the key file %s: %w", path, err)
	}
	return keys, nil
}

func parseKeys(content []byte) ([]Key, error) {
	var keys []Key
	for i, line := range bytes.Split(content, []byte("\n")) {
		line = bytes.TrimSpace(line)
		switch {
		case len(line) == 0:
			continue
		case len(line) < minKeyBytes:
			return nil, fmt.Errorf("the key in line %d has %d characters instead of at least %d; %s", i+1, len(line), minKeyBytes, howToMakeOne)
		case len(keys) == maxKeys:
			return nil, fmt.Errorf("the file has more than %d keys; keep only the key that signs, in the first line, and the key before or after it", maxKeys)
		}
		keys = append(keys, bytes.Clone(line))
	}
	if len(keys) == 0 {
		return nil, errors.New("the file is empty; " + howToMakeOne)
	}
	return keys, nil
}
