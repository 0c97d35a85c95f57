package inspect

import (
	"regexp"
	"slices"
	"strings"

	"drydock.dev/drydock/internal/text"
)

// Commands adds flags to the commands in a text, so that each command uses the cluster that the
// plugin has read. All output of the plugin and its page goes through In, because the texts of
// holds and Events also contain commands.
type Commands struct {
	// Kubectl are the flags that name the cluster and the user, for example --context prod.
	Kubectl []string
	// Plugin are additional flags for the plugin's commands, by the command's name.
	Plugin map[string][]string
}

var kubectlCommands = []string{
	"annotate", "apply", "auth", "cordon", "delete", "describe", "drain", "edit", "events", "get", "label", "logs", "patch", "port-forward",
	"rollout", "taint", "uncordon",
}

// commandNamed does not match a command that already has flags.
var commandNamed = regexp.MustCompile(`\bkubectl( drydock)? ([a-z][a-z-]*[a-z])\b`)

// In returns the text with the flags in each command.
func (c Commands) In(s string) string { return c.in(s, func(flags string) string { return flags }) }

// Escaped is In for text with escapes, for example HTML. escape also escapes the added flags.
func (c Commands) Escaped(s string, escape func(string) string) string { return c.in(s, escape) }

func (c Commands) in(s string, escape func(string) string) string {
	if len(c.Kubectl) == 0 && len(c.Plugin) == 0 {
		return s
	}
	return commandNamed.ReplaceAllStringFunc(s, func(command string) string {
		words := strings.Split(command, " ")
		flags := c.Kubectl
		if words[1] == "drydock" && len(words) > 2 {
			further, is := c.Plugin[words[2]]
			if !is {
				return command
			}
			flags = append(slices.Clip(flags), further...)
		} else if !slices.Contains(kubectlCommands, words[1]) {
			return command
		}
		if len(flags) == 0 {
			return command
		}
		quoted := make([]string, len(flags))
		for i, f := range flags {
			quoted[i] = text.ShellWord(f)
		}
		last := len(words) - 1
		return strings.Join(words[:last], " ") + " " + escape(strings.Join(quoted, " ")) + " " + words[last]
	})
}
