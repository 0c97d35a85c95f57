package inspect

import (
	"cmp"
	"net/url"

	"drydock.dev/drydock/internal/text"
)

// Cluster is the name of the cluster that was read, as people know it.
type Cluster struct {
	Context string `json:"context,omitempty"`
	// Server is the address of the API server, without a user or a password.
	Server string `json:"server,omitempty"`
}

// NewCluster names the cluster by its context and the address of its API server.
func NewCluster(context, server string) Cluster {
	if at, err := url.Parse(server); err != nil {
		server = "" // left out, because an address that is not a URL may contain a password
	} else if at.User != nil {
		at.User = nil
		server = at.String()
	}
	return Cluster{Context: text.Line(context, maxName), Server: text.Line(server, maxName)}
}

const maxName = 512

// String returns the context and the server, or "" if both are unknown.
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

// Says returns the sentence with the cluster's name before it.
func (c Cluster) Says(sentence string) string {
	if name := c.String(); name != "" {
		return "Cluster " + name + ": " + sentence
	}
	return sentence
}
