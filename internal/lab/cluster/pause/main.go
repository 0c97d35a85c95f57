// Command pause does nothing until a signal ends it. It holds the namespaces of each pod. Pods that
// only have to run use it as their container.
//
// With an address as its argument it takes connections there. SIGUSR1 makes it hang: it takes none
// any more, until SIGUSR2 or a restart. So it stands for an agent whose pod is not Ready. A second
// argument is how long it takes to end.
package main

import (
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGUSR1, syscall.SIGUSR2)
	var listener net.Listener
	if len(os.Args) > 1 && os.Args[1] != "" {
		listener = listen(os.Args[1])
	}
	for s := range signals {
		switch {
		case s == syscall.SIGUSR1 && listener != nil:
			_ = listener.Close()
		case s == syscall.SIGUSR2 && listener != nil:
			listener = listen(os.Args[1])
		case s == syscall.SIGTERM || s == syscall.SIGINT:
			if len(os.Args) > 2 {
				wait, err := time.ParseDuration(os.Args[2])
				if err != nil {
					fail(err)
				}
				time.Sleep(wait)
			}
			return
		}
	}
}

func listen(address string) net.Listener {
	listener, err := net.Listen("tcp", address) //nolint:noctx // it ends with the program
	if err != nil {
		fail(err)
	}
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			_ = connection.Close()
		}
	}()
	return listener
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "pause:", err)
	os.Exit(1)
}
