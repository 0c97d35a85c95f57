package sidecar

import (
	"context"

	"drydock.dev/drydock/internal/secretfile"
	"drydock.dev/drydock/remediations/providers/sidecar/settings"
)

// maxTokenBytes is for a token's file.
const maxTokenBytes = 64 << 10

// Token returns a bearer token for one approval.
type Token func(context.Context) (string, error)

// Configured returns one Client for each item of the section providers.sidecars. o has the options
// that are not in the configuration. asked returns a Token of a ServiceAccount.
func Configured(all settings.Sidecars, o Options, asked func(settings.TokenFor) Token) (Clients, error) {
	out := Clients{}
	for _, s := range all {
		o.Sidecar, o.Token = s, tokenOf(s, asked)
		client, err := New(o)
		if err != nil {
			return nil, err
		}
		out[s.Name] = client
	}
	return out, nil
}

func tokenOf(s settings.Sidecar, asked func(settings.TokenFor) Token) Token {
	switch {
	case s.TokenFor != nil:
		return asked(*s.TokenFor)
	case s.TokenFile != "":
		return func(context.Context) (string, error) {
			return secretfile.Token("the sidecar provider "+s.Name+"'s token file", s.TokenFile, maxTokenBytes)
		}
	}
	return nil
}
