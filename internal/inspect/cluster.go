package inspect

import (
	"cmp"
	"net/url"

	"drydock.dev/drydock/internal/text"
)

// Cluster identifies the cluster that was read, as people know it.
type Cluster struct {
	// Context is the context of the kubeconfig. Empty: no kubeconfig was used.
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

// String returns the context and the server. Empty: both are unknown.
func (c Cluster) String() string {
	if c.Context != "" && c.Server != "" {
		return c.Context + " (" + c.Server + ")"
	}
	return cmp.Or(c.Context, c.Server)
}

// Lines returns the line that names the cluster, or no line if its name is unknown.
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
