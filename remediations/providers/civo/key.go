package civo

import (
	"fmt"
	"strings"

	"drydock.dev/drydock/internal/secretfile"
)

// maxKey bounds the key file: its path may name a wrong, large file.
const maxKey = 4 << 10

// readKey reads the API key: one word, because a file with two lines is another file. Its errors
// name the file and never quote it.
func readKey(path string) (string, error) {
	key, err := secretfile.Token("the API key file", path, maxKey)
	if err != nil {
		return "", err
	}
	if strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", fmt.Errorf("reading the API key file %s: it holds more than one word", path)
	}
	return key, nil
}
