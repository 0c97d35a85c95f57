package cli

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// FlagsFromEnvironment sets each flag that is not on the command line from its environment
// variable, or else from its second variable in also. A variable with an empty value counts as set.
// lookup is os.LookupEnv.
func FlagsFromEnvironment(cmd *cobra.Command, lookup func(string) (string, bool), also map[string]string) error {
	var faults []error
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Changed || f.Name == "help" {
			return
		}
		for _, name := range []string{EnvironmentName(f.Name), also[f.Name]} {
			value, set := lookup(name)
			if !set {
				continue
			}
			if err := cmd.Flags().Set(f.Name, value); err != nil {
				faults = append(faults, Usagef("reading the environment variable %s, %w", name, err))
			}
			return
		}
	})
	return errors.Join(faults...)
}

// EnvironmentName returns the name of a flag's environment variable.
func EnvironmentName(flag string) string {
	return "DRYDOCK_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}
