package civo

import (
	"fmt"
	"io"
	"os"
	"strings"
)

// maxKey bounds the key file, which somebody may have pointed at the wrong thing.
const maxKey = 4 << 10

// readKey reads the API key. Its errors name the file and never quote it.
func readKey(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("opening the API key file: %w", err) // names the path
	}
	defer func() { _ = file.Close() }()
	raw, err := io.ReadAll(io.LimitReader(file, maxKey+1))
	if err != nil {
		return "", fmt.Errorf("reading the API key file: %w", err) // names the path
	}
	key := strings.TrimSpace(string(raw))
	switch {
	case key == "":
		return "", fmt.Errorf("reading the API key file %s: it is empty", path)
	case len(raw) > maxKey:
		return "", fmt.Errorf("reading the API key file %s: it is longer than %d bytes", path, maxKey)
	case strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }):
		return "", fmt.Errorf("reading the API key file %s: it holds more than one word", path)
	}
	return key, nil
}
