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
	cmd.Flags().BoolVar(&clientOnly, "client", false, "print only the plugin's version, without a request to the cluster")
	cmd.Flags().StringVar(&p.ledger, "ledger", inspect.LedgerName, "name of the ledger's ConfigMap")
	return cmd
}

// serverVersion reads the ledger, because every user who may see the status may read the ledger.
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
		v.Problem = fmt.Sprintf("ConfigMap %s/%s has no annotation %s: an older Drydock wrote it, which did not set this annotation yet", l.Namespace, l.Name, remediations.VersionKey)
	}
	return nil
}

// betweenReleases matches the version that the go command or git describe gives to a build without
// a tag of its own. The number in such a version is that of an earlier tag, or 0.0.0, so it does
// not show whether the build is older or newer than a release.
var betweenReleases = regexp.MustCompile(`[-.]\d{14}-[0-9a-f]{12}(\+|$)|-\d+-g[0-9a-f]+(-|$)|[-+.]dirty$`)

// skew says what to upgrade. A patch release changes no format that both read.
func skew(client, server string) string {
	if client == server {
		return "none"
	}
	c, errC := semver.ParseSemantic(client)
	s, errS := semver.ParseSemantic(server)
	switch {
	case errC != nil || errS != nil || betweenReleases.MatchString(client) || betweenReleases.MatchString(server):
		return "unknown: at least one of the two versions is not a release; use the plugin of the same version as Drydock"
	case c.Major() == s.Major() && c.Minor() == s.Minor():
		return "they differ by a patch release, which is supported"
	case c.LessThan(s):
		return "the plugin is older than Drydock: upgrade the plugin, because it may not understand what Drydock writes"
	}
	return "the plugin is newer than Drydock: upgrade Drydock, or use the plugin of its version"
}
