package cli

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// FlagsFromEnvironment sets each flag that the command line left alone from its variable, where there is one. A variable that is
// set to nothing counts: it is what somebody wrote. also has a second variable for some flags, which counts where the first is
// not set. lookup is os.LookupEnv.
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

// EnvironmentName returns the variable that stands for a flag.
func EnvironmentName(flag string) string {
	return "DRYDOCK_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}
