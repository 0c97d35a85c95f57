package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// downward are the names that the downward API's variables have by custom.
var downward = map[string]string{"node-name": "NODE_NAME", "namespace": "POD_NAMESPACE"}

// flagsFromEnvironment sets each flag that the command line left alone from its variable, where there is one.
// A variable that is set to nothing counts: it is what somebody wrote.
func flagsFromEnvironment(cmd *cobra.Command, lookup func(string) (string, bool)) error {
	var faults []error
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Changed || f.Name == "help" {
			return
		}
		for _, name := range []string{environmentName(f.Name), downward[f.Name]} {
			value, set := lookup(name)
			if !set {
				continue
			}
			if err := cmd.Flags().Set(f.Name, value); err != nil {
				faults = append(faults, usageError{fmt.Errorf("reading the environment variable %s, %w", name, err)})
			}
			return
		}
	})
	return errors.Join(faults...)
}

// environmentName returns the variable that stands for a flag.
func environmentName(flag string) string {
	return "DRYDOCK_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}
