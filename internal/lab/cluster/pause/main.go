// Command pause does nothing until a signal ends it. It holds the namespaces of each pod. Pods that
// only have to run use it as their container.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM, syscall.SIGINT)
	<-end
}
