package civo

import (
	"fmt"
	"strings"

	"drydock.dev/drydock/internal/secretfile"
)

// maxKey limits the read if the configured path names a wrong, large file. It is in bytes.
const maxKey = 4 << 10

// Errors name the file, and never contain its text.
func readKey(path string) (string, error) {
	key, err := secretfile.Token("the API key file", path, maxKey)
	if err != nil {
		return "", err
	}
	if strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", fmt.Errorf("reading the API key file %s: the file has more than one word", path)
	}
	return key, nil
}
