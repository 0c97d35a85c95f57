// Command build builds programs of the lab and of the checks into the cache and prints their paths:
//
//	go run ./internal/lab/programs/build [-fetch] [lab | demo | cluster | check | NAME ...]
//
// Without an argument it builds what the lab needs. With -fetch it only downloads their source.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"drydock.dev/drydock/internal/lab/programs"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "build:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	fetch := len(args) > 0 && args[0] == "-fetch"
	if fetch {
		args = args[1:]
	}
	if len(args) == 0 {
		args = []string{"lab"}
	}
	var names []string
	for _, arg := range args {
		switch arg {
		case "lab":
			names = append(names, programs.Lab...)
		case "demo":
			names = append(names, programs.Demo...)
		case "cluster":
			names = append(names, programs.Cluster...)
		case "check":
			names = append(names, programs.Check...)
		default:
			names = append(names, arg)
		}
	}
	if fetch {
		return programs.Fetch(ctx, names...)
	}
	paths, err := programs.Build(ctx, os.Stderr, names...)
	if err != nil {
		return err
	}
	for _, name := range names {
		fmt.Println(paths[name])
	}
	return nil
}
