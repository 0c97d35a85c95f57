package main

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

const logs = "/var/log/pods"

func keep(ctx context.Context, name string, command []string) {
	for ctx.Err() == nil {
		if err := once(ctx, name, command); err != nil && ctx.Err() == nil {
			slog.Error("a static pod has ended", "pod", name, "error", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

func once(ctx context.Context, name string, command []string) error {
	if err := os.MkdirAll(logs, 0o755); err != nil {
		return err
	}
	log, err := os.OpenFile(filepath.Join(logs, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Stdout, cmd.Stderr = log, log
	// Two seconds are enough for an etcd member to leave the cluster cleanly. An API server would
	// wait longer for its clients, but they have other API servers.
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 2 * time.Second
	slog.Info("a static pod starts", "pod", name)
	return cmd.Run()
}
