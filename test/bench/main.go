// Command bench measures Drydock on a whole cluster on this machine, and prints one table. Each
// figure stands beside its reference, which is measured in the same run, on the same fleet and
// under the same load. test/bench/RESULTS.md has the latest table and explains how to read it.
//
// Everything listens on loopback and ends with the program.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
)

type options struct {
	sizes  []int
	rounds int
	quick  bool
	only   string
	hours  int
	out    string
	// A folder for CPU and heap profiles of Drydock. Empty means no profiles.
	profiles string
}

func main() {
	if len(os.Args) > 2 && os.Args[1] == "reference" {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		if err := reference(ctx, os.Args[2], os.Args[3:]); err != nil {
			fmt.Fprintln(os.Stderr, "bench reference:", err)
			stop()
			os.Exit(1) //nolint:gocritic // stop was called before
		}
		return
	}
	var o options
	nodes := flag.String("nodes", "100,1000,5000", "fleets to measure, by their number of nodes")
	flag.IntVar(&o.rounds, "rounds", 5, "times that each figure is taken; the table has the medians")
	flag.BoolVar(&o.quick, "quick", false, "100 and 1,000 nodes, short waits: to see that it works, not to be quoted")
	flag.IntVar(&o.hours, "hours", backtestHours, "hours of the past that a backtest reads; 720 are a month")
	flag.StringVar(&o.only, "only", "", "measure only the parts whose names contain one of these words, with commas between them: "+strings.Join(names(), ", "))
	flag.StringVar(&o.out, "o", "", "file that takes the table, too")
	flag.StringVar(&o.profiles, "profiles", "", "folder that takes Drydock's profiles of each part")
	flag.Parse()
	if o.hours < 2 || o.rounds < 1 {
		fmt.Fprintln(os.Stderr, "bench: -hours must be at least 2, and -rounds at least 1")
		os.Exit(2)
	}
	if o.quick && !given("nodes") {
		*nodes = "100,1000"
	}
	for _, n := range strings.Split(*nodes, ",") {
		size, err := strconv.Atoi(strings.TrimSpace(n))
		if err != nil || size < 20 {
			fmt.Fprintf(os.Stderr, "bench: -nodes %q: give numbers from 20 on, with commas between them\n", *nodes)
			os.Exit(2)
		}
		o.sizes = append(o.sizes, size)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := bench(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func given(name string) (found bool) {
	flag.Visit(func(f *flag.Flag) { found = found || f.Name == name })
	return found
}

func bench(ctx context.Context, o options) error {
	t := &table{}
	var failed error
	for _, size := range o.sizes {
		if failed = measure(ctx, o, size, t); failed != nil {
			break
		}
	}
	text := t.String(o)
	fmt.Print("\n", text)
	if o.out != "" {
		if err := os.WriteFile(o.out, []byte(text), 0o644); err != nil {
			return fmt.Errorf("writing the table: %w", err)
		}
	}
	return failed
}
