package programs

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Keep makes sure that the cache has a folder with that name, and returns its path. fill makes the
// content in a new folder, which gets the name when it is complete. Concurrent processes wait for
// each other.
func Keep(ctx context.Context, out io.Writer, name string, fill func(ctx context.Context, dir string) error) (string, error) {
	path, err := Kept(name)
	if err != nil {
		return "", err
	}
	if exists(path) {
		return path, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", fmt.Errorf("making the cache folder: %w", err)
	}
	unlock, err := lock(ctx, path+".lock", func() { fmt.Fprintf(out, "waiting for another process that makes %s\n", name) })
	if err != nil {
		return "", err
	}
	defer unlock()
	if exists(path) {
		return path, nil // the process that held the lock has made it
	}
	fresh, err := os.MkdirTemp(filepath.Dir(path), ".making-"+name+"-")
	if err != nil {
		return "", fmt.Errorf("making a folder in the cache: %w", err)
	}
	defer os.RemoveAll(fresh)
	if err := fill(ctx, fresh); err != nil {
		return "", fmt.Errorf("making %s: %w", name, err)
	}
	if err := os.Rename(fresh, path); err != nil {
		return "", fmt.Errorf("moving %s into the cache: %w", name, err)
	}
	return path, nil
}

// Kept returns the path of Keep's folder with that name. The folder need not exist.
func Kept(name string) (string, error) {
	cache, err := cacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(cache, "lab", name), nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
