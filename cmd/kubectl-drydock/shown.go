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

func newPlugin(streams genericiooptions.IOStreams, flags *genericclioptions.ConfigFlags) *plugin {
	p := &plugin{flags: flags, asIs: streams.Out}
	p.IOStreams = genericiooptions.IOStreams{In: streams.In, Out: shown{streams.Out, p}, ErrOut: shown{streams.ErrOut, p}}
	return p
}

// shown writes the plugin's output. It adds the flags of this call to each command in the text, so
// that a copied command works on the same cluster. One Write call must contain the whole text of a
// command.
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

// unshown are the flags of kubectl that printed commands do not repeat: they select neither the
// cluster nor the user, or they are secret.
var unshown = map[string]bool{"cache-dir": true, "disable-compression": true, "help": true, "namespace": true, "request-timeout": true, "token": true}

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

// bound returns p.commands with the flag --context, even if the user did not give it. The
// kubeconfig's current context may change before a person copies a printed command.
func (p *plugin) bound(c inspect.Client) inspect.Commands {
	out := p.commands
	if c.Cluster.Context != "" && !slices.Contains(out.Kubectl, "--context") {
		out.Kubectl = append([]string{"--context", c.Cluster.Context}, out.Kubectl...)
	}
	return out
}
