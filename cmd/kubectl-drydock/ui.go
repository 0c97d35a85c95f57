package main

import (
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/pkg/browser"
	"github.com/spf13/cobra"

	"drydock.dev/drydock/internal/cli"
	"drydock.dev/drydock/internal/inspect"
	"drydock.dev/drydock/internal/ui"
)

func (p *plugin) newUICommand() *cobra.Command {
	var port int
	var quiet, readOnly bool
	var from inspect.Sources
	cmd := &cobra.Command{
		Use:   "ui [--port N] [--no-browser] [--read-only] [--alertmanager URL] [--config FILE]",
		Short: "Show the fleet as a page in your browser",
		Long: "Ui serves a page on this machine only, with your own rights: one tile for each node, what Drydock does to it, and what holds\n" +
			"its repair. The page follows changes by itself. The printed address opens the page once, with your rights, so keep it\n" +
			"secret. The page ends with the command.",
		Example: "  kubectl drydock ui\n  kubectl drydock ui --port 8585 --no-browser --read-only",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if port < 0 || port > 65535 {
				return cli.Usagef("--port is %d; give a port between 1 and 65535, or 0 for any free port", port)
			}
			c, err := p.connect()
			if err != nil {
				return err
			}
			listener, err := ui.Listen(cmd.Context(), port)
			if err != nil {
				return err
			}
			o := ui.Options{Reader: p.reader(c), Token: ui.NewToken(), ReadOnly: readOnly, Sources: from, Commands: p.bound(c), After: time.After, Log: logr.Discard()}
			remove := func() {}
			if !quiet {
				o.FileToken = ui.NewToken()
				path, done, err := ui.OpeningFile(listener, o.FileToken)
				if err != nil {
					return err
				}
				remove = sync.OnceFunc(done)
				defer remove()
				go p.openBrowser(path)
			}
			o.Entered = func(next string) {
				if remove(); next != "" {
					say(p.Out, "The page was opened. To open it in another browser, once: %s", ui.Address(listener, next))
				}
			}
			if name := c.Cluster.String(); name != "" {
				say(p.ErrOut, "Cluster %s", name)
			}
			fmt.Fprintln(p.Out, ui.Address(listener, o.Token))
			return ui.New(o).Serve(cmd.Context(), listener)
		},
	}
	cmd.Flags().IntVar(&port, "port", 0, "port on 127.0.0.1; 0 means any free port")
	cmd.Flags().BoolVar(&quiet, "no-browser", false, "only print the address")
	cmd.Flags().BoolVar(&readOnly, "read-only", false, "the page has no buttons that change something")
	cmd.Flags().StringArrayVar(&from.Alertmanagers, "alertmanager", nil, "URL of an Alertmanager, as this machine reaches it; may be given several times")
	cmd.Flags().StringVar(&from.Config, "config", "", "file with Drydock's configuration; without it, the plugin reads the ConfigMap of Drydock's chart")
	cmd.Flags().StringVar(&p.ledger, "ledger", inspect.LedgerName, "name of the ledger's ConfigMap")
	cmd.Flags().StringVar(&p.lease, "lease", leaseName, "name of the Lease that Drydock's replicas use to elect a leader")
	return cmd
}

// openBrowser opens a local file that leads to the page. The page's address contains a secret, and
// every user of the machine can read the arguments of a program.
func (p *plugin) openBrowser(path string) {
	browser.Stdout, browser.Stderr = p.ErrOut, p.ErrOut
	if err := browser.OpenFile(path); err != nil {
		say(p.ErrOut, "No browser was opened (%v): open the address yourself.", err)
	}
}
