package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/google/uuid"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/lab/civosim"
)

type provider struct {
	with   string         // what the cluster has for this provider
	answer string         // the name of its answer in the output
	nodes  []lab.NodeSpec // if nil, plain nodes
	// off is called when a machine is off, before it comes up again.
	start func(ctx context.Context, l *lab.Lab, b built, off func(node string)) (*machines, error)
}

type machines struct {
	civo    *lab.Civo      // nil with another provider
	http    map[string]any // the configuration providers.http; nil with another provider
	reboots func() []string
	Close   func()
}

var providers = map[string]provider{
	"civo": {"a simulator for Civo's API", "Civo's answer", lab.CivoNodes(nodes), startCivo},
	"http": {"simulated power outlets", "the receiver's answer", nil, startReceiver},
}

func startCivo(ctx context.Context, l *lab.Lab, _ built, off func(string)) (*machines, error) {
	civo, err := l.StartCivo(ctx, lab.CivoOptions{RebootTime: rebootTime, Cures: func(in civosim.Instance, _ civosim.Op) bool {
		off(in.Hostname)
		return true
	}})
	if err != nil {
		return nil, err
	}
	return &machines{civo: civo, Close: civo.Close, reboots: func() (out []string) {
		for _, c := range civo.CallsTo(civosim.HardReboots) {
			out = append(out, c.Method+" "+c.Path)
		}
		return out
	}}, nil
}

// startReceiver starts the receiver of deploy/examples, with a list of the machines and a command
// that power-cycles one of them. Each machine is at the power outlet with its number. The command
// writes the outlet into a pipe, which the simulated outlets read.
func startReceiver(ctx context.Context, l *lab.Lab, b built, off func(string)) (*machines, error) {
	all, err := l.Client().CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing the nodes for the receiver: %w", err)
	}
	list, behind := map[string]string{}, map[string]string{}
	for i := range all.Items {
		n := &all.Items[i]
		outlet := "outlet-" + strings.TrimPrefix(n.Name, "node-")
		list[n.Status.NodeInfo.SystemUUID], behind[outlet] = outlet, n.Name
	}
	text, err := json.MarshalIndent(list, "  ", "  ")
	if err != nil {
		return nil, fmt.Errorf("encoding the list of machines: %w", err)
	}
	pipe := filepath.Join(b.folder, "outlets")
	files := map[string]string{
		"machines.json": string(text),
		"power-cycle":   "#!/bin/sh\necho \"$1\" > " + pipe + "\n",
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(b.folder, name), []byte(content), 0o700); err != nil {
			return nil, fmt.Errorf("writing the receiver's files: %w", err)
		}
	}
	key, err := l.WriteSecret("http-key", "key-"+uuid.NewString())
	if err != nil {
		return nil, err
	}
	power, err := openPipe(pipe)
	if err != nil {
		return nil, err
	}
	port, err := lab.FreePort()
	if err != nil {
		return nil, err
	}
	address := fmt.Sprintf("127.0.0.1:%d", port)
	args := []string{address, key, filepath.Join(b.folder, "machines.json"), filepath.Join(b.folder, "power-cycle")}
	process, err := lab.StartProcess(ctx, lab.Spec{Name: "the receiver", Path: b.receiver, Args: args, Log: filepath.Join(l.LogDir(), "http-receiver.log")})
	if err != nil {
		return nil, err
	}
	if err := listens(ctx, address); err != nil {
		process.Kill()
		return nil, err
	}
	fmt.Printf("\nThe receiver is deploy/examples/http-receiver. Its command would be yours, for example ipmitool -H \"$1\" chassis power cycle.\n\n"+
		"$ http-receiver %s http-key machines.json power-cycle &\n$ cat machines.json\n  %s\n$ cat power-cycle\n  %s\n",
		address, text, strings.ReplaceAll(strings.TrimSpace(files["power-cycle"]), "\n", "\n  "))
	o := &outlets{lab: l, behind: behind, off: off}
	ctx, cancel := context.WithCancel(ctx)
	o.work.Go(func() { o.read(ctx, power) })
	return &machines{
		http:    map[string]any{"reboot": map[string]any{"url": "http://" + address + "/reboot"}, "observe": map[string]any{"url": "http://" + address + "/observe"}, "signingKeyFile": key},
		reboots: o.cycled,
		Close: func() {
			process.Kill()
			cancel()
			_ = power.Close() // ends the goroutine that reads the pipe
			o.work.Wait()
		},
	}, nil
}

// The pipe stays open when a writer closes it.
func openPipe(path string) (*os.File, error) {
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		return nil, fmt.Errorf("making the pipe %s: %w", path, err)
	}
	return os.OpenFile(path, os.O_RDWR, 0)
}

func listens(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, lab.Patience)
	defer cancel()
	tick := time.NewTicker(25 * time.Millisecond)
	defer tick.Stop()
	var last error
	for {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		if err == nil {
			return conn.Close()
		}
		last = errors.Join(err, ctx.Err())
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("the receiver does not listen: %w", last)
		}
	}
}

type outlets struct {
	lab    *lab.Lab
	behind map[string]string // the Node, by outlet
	off    func(node string)
	work   sync.WaitGroup

	mu   sync.Mutex
	done []string
}

// The outlets whose names arrive in the pipe are power-cycled.
func (o *outlets) read(ctx context.Context, pipe *os.File) {
	for lines := bufio.NewScanner(pipe); lines.Scan(); {
		node := o.behind[lines.Text()]
		if node == "" {
			continue
		}
		o.mu.Lock()
		o.done = append(o.done, "power-cycle "+lines.Text())
		o.mu.Unlock()
		o.lab.Off(node)
		o.work.Go(func() {
			select {
			case <-time.After(rebootTime):
			case <-ctx.Done():
			}
			o.off(node)
			if err := o.lab.On(context.WithoutCancel(ctx), node, uuid.NewString(), true); err != nil {
				fmt.Printf("the machine of %s does not come up: %v\n", node, err)
			}
		})
	}
}

func (o *outlets) cycled() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.done)
}
