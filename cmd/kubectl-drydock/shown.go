package main

import (
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"drydock.dev/drydock/internal/inspect"
)

// newPlugin makes a plugin that prints through shown, so that every printed command names the
// cluster.
func newPlugin(streams genericiooptions.IOStreams, flags *genericclioptions.ConfigFlags) *plugin {
	p := &plugin{flags: flags, asIs: streams.Out}
	p.IOStreams = genericiooptions.IOStreams{In: streams.In, Out: shown{streams.Out, p}, ErrOut: shown{streams.ErrOut, p}}
	return p
}

// shown writes the plugin's output, and adds the given flags to each command in it. Each write must
// contain whole commands.
type shown struct {
	out    io.Writer
	plugin *plugin
}

// Write implements io.Writer.
func (s shown) Write(b []byte) (int, error) {
	if _, err := io.WriteString(s.out, s.plugin.commands.In(string(b))); err != nil {
		return 0, err
	}
	return len(b), nil
}

// unshown are kubectl's flags that select neither cluster nor user, or that are secret.
var unshown = map[string]bool{"cache-dir": true, "disable-compression": true, "help": true, "namespace": true, "request-timeout": true, "token": true}

// commandsOf returns the commands with the flags of this call.
func commandsOf(called *cobra.Command) inspect.Commands {
	root, own := called.Root(), map[string][]string{}
	var out inspect.Commands
	called.Flags().Visit(func(f *pflag.Flag) {
		switch persistent := root.PersistentFlags().Lookup(f.Name) != nil; {
		case persistent && !unshown[f.Name]:
			out.Kubectl = append(out.Kubectl, wordsOf(f)...)
		case persistent && f.Name == "namespace", !persistent && (f.Name == "ledger" || f.Name == "lease"):
			own[f.Name] = wordsOf(f)
		}
	})
	out.Plugin = map[string][]string{}
	for _, c := range root.Commands() {
		words := []string{}
		for _, name := range []string{"namespace", "ledger", "lease"} {
			if name == "namespace" || c.Flags().Lookup(name) != nil {
				words = append(words, own[name]...)
			}
		}
		out.Plugin[c.Name()] = words
	}
	return out
}

// wordsOf returns the arguments that set the flag.
func wordsOf(f *pflag.Flag) (words []string) {
	name := "--" + f.Name
	if f.Shorthand == "n" {
		name = "-n"
	}
	values := []string{f.Value.String()}
	if several, is := f.Value.(pflag.SliceValue); is {
		values = several.GetSlice()
	}
	for _, v := range values {
		switch {
		case f.NoOptDefVal != "": // its value needs the equals sign
			words = append(words, fmt.Sprintf("%s=%s", name, v))
		case f.Name == "server":
			words = append(words, name, inspect.NewCluster("", v).Server)
		default:
			words = append(words, name, v)
		}
	}
	return words
}

// bound returns the commands with the context in use, even if no flag names it. People may read the
// page or the answer to a write after the kubeconfig's current context has changed.
func (p *plugin) bound(c inspect.Client) inspect.Commands {
	out := p.commands
	if c.Cluster.Context != "" && !slices.Contains(out.Kubectl, "--context") {
		out.Kubectl = append([]string{"--context", c.Cluster.Context}, out.Kubectl...)
	}
	return out
}
