package main

import (
	"context"
	"fmt"
	"regexp"
	"runtime/debug"

	"github.com/spf13/cobra"
	semver "k8s.io/apimachinery/pkg/util/version"

	"drydock.dev/drydock/internal/inspect"
	build "drydock.dev/drydock/internal/version"
	"drydock.dev/drydock/remediations"
)

// The linker sets these in a release.
var version, commit string

func thisBuild() build.Build {
	return build.Build{Program: "kubectl drydock", Version: version, Commit: commit}
}

func buildInfo() *debug.BuildInfo {
	info, _ := debug.ReadBuildInfo()
	return info
}

// versions are the versions of the plugin and of Drydock in the cluster.
type versions struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Client     string `json:"client"`
	Server     string `json:"server,omitempty"`
	// Problem says why the server's version is unknown.
	Problem string `json:"problem,omitempty"`
	Skew    string `json:"skew,omitempty"`
}

func (p *plugin) newVersionCommand() *cobra.Command {
	var o output
	var clientOnly bool
	cmd := &cobra.Command{
		Use:     "version [--client] [-o json|yaml]",
		Short:   "Print the versions of the plugin and of Drydock in the cluster",
		Long:    "Version prints the version of the plugin, the version of the Drydock that last wrote the ledger, and whether they match.",
		Example: "  kubectl drydock version\n  kubectl drydock version --client",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			v := versions{APIVersion: inspect.APIVersion, Kind: "Version", Client: thisBuild().Now()}
			var unreachable error
			if !clientOnly {
				unreachable = p.serverVersion(cmd.Context(), &v)
			}
			if o.to != nil {
				if err := o.print(v, p.Out); err != nil {
					return err
				}
				return unreachable
			}
			p.say("Client: %s", thisBuild().Details(buildInfo()))
			switch {
			case unreachable != nil || clientOnly:
			case v.Problem != "":
				p.say("Server: unknown: %s", v.Problem)
			default:
				p.say("Server: %s", v.Server)
				p.say("Skew: %s", v.Skew)
			}
			return unreachable
		},
	}
	o.bind(cmd)
	cmd.Flags().BoolVar(&clientOnly, "client", false, "do not ask the cluster")
	cmd.Flags().StringVar(&p.ledger, "ledger", inspect.LedgerName, "name of the ledger's ConfigMap")
	return cmd
}

// serverVersion reads the version from the ledger, which every user who may see the status may
// read.
func (p *plugin) serverVersion(ctx context.Context, v *versions) error {
	c, err := p.connect()
	if err != nil {
		return err
	}
	l, err := p.reader(c).ReadLedger(ctx)
	if err != nil {
		return err
	}
	switch v.Server = plain(l.Version); {
	case v.Server != "":
		v.Skew = skew(v.Client, v.Server)
	case l.Problem != "":
		v.Problem = l.Problem
	default:
		v.Problem = fmt.Sprintf("ConfigMap %s/%s has no annotation %s: the Drydock that wrote it is older than that annotation", l.Namespace, l.Name, remediations.VersionKey)
	}
	return nil
}

// betweenReleases matches the version that the go command or git describe gives to a build without
// its own tag. Such a version has the number of an earlier tag, or 0.0.0. So it does not show
// whether the build is older or newer than a release.
var betweenReleases = regexp.MustCompile(`[-.]\d{14}-[0-9a-f]{12}(\+|$)|-\d+-g[0-9a-f]+(-|$)|[-+.]dirty$`)

// skew says in a sentence whether the plugin fits the Drydock in the cluster. A patch release
// changes nothing that both read.
func skew(client, server string) string {
	if client == server {
		return "none"
	}
	c, errC := semver.ParseSemantic(client)
	s, errS := semver.ParseSemantic(server)
	switch {
	case errC != nil || errS != nil || betweenReleases.MatchString(client) || betweenReleases.MatchString(server):
		return "unknown: at least one of them is not a release; use the plugin of the same version as Drydock"
	case c.Major() == s.Major() && c.Minor() == s.Minor():
		return "a patch release apart, which is supported"
	case c.LessThan(s):
		return "the plugin is older than Drydock: upgrade the plugin, because it may not understand what Drydock writes"
	}
	return "the plugin is newer than Drydock: upgrade Drydock, or use the plugin of its version"
}
