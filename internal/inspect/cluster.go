package inspect

import (
	"cmp"
	"net/url"

	"drydock.dev/drydock/internal/text"
)

// Cluster is the one that is asked, as people know it.
type Cluster struct {
	// Context is the kubeconfig's; empty: none was used.
	Context string `json:"context,omitempty"`
	// Server is the address of the API server, without a user or a password.
	Server string `json:"server,omitempty"`
}

// NewCluster names the cluster by its context and the address of its API server.
func NewCluster(context, server string) Cluster {
	if at, err := url.Parse(server); err != nil {
		server = "" // an address that cannot be read may hold a password
	} else if at.User != nil {
		at.User = nil
		server = at.String()
	}
	return Cluster{Context: text.Line(context, maxName), Server: text.Line(server, maxName)}
}

const maxName = 512

// String is the context and the server; empty: neither is known.
func (c Cluster) String() string {
	if c.Context != "" && c.Server != "" {
		return c.Context + " (" + c.Server + ")"
	}
	return cmp.Or(c.Context, c.Server)
}

// Lines are the one that says which cluster was read; none where it is not known.
func (c Cluster) Lines() []Line {
	if name := c.String(); name != "" {
		return []Line{{Label: "Cluster", Text: name, Calm: true}}
	}
	return nil
}

// Says puts the cluster before a sentence about it.
func (c Cluster) Says(sentence string) string {
	if name := c.String(); name != "" {
		return "Cluster " + name + ": " + sentence
	}
	return sentence
}
