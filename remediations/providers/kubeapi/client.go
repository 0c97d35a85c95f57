package kubeapi

import (
	"errors"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"drydock.dev/drydock/internal/redact"
	"drydock.dev/drydock/remediations/providers/kit"
)

// defaultTimeout is far below the engine's limit for sending a call, 10 s after its intent.
const defaultTimeout = 5 * time.Second

// Options has the API server and the objects that the client is for.
type Options struct {
	// REST is the connection to the API server.
	REST *rest.Config
	// Kubeconfig is the path of a kubeconfig for another cluster's API server, used instead of
	// REST. The client reads it before each request, so a new file is used at once.
	Kubeconfig string
	// Server is the API server's name in messages. The default is "the API server".
	Server string
	// APIVersion is the API version of the objects. Namespace is their namespace. It is empty if
	// the objects have no namespace.
	APIVersion, Namespace string
	// Needs is the part of an error that says what must be installed so that the API server serves
	// APIVersion.
	Needs string
	// Docs is the page of the documentation that lists Drydock's rights.
	Docs string
	// Timeout limits one request. The default is 5 s.
	Timeout time.Duration
}

// Client sends requests for the objects of one API group. It is safe for concurrent use.
type Client struct {
	// Reporter makes messages without Drydock's credentials.
	kit.Reporter
	// Page is how many objects one page of a list has.
	Page int

	o    Options
	link *link
}

// New checks the options. It sends no request.
func New(o Options) (*Client, error) {
	switch {
	case o.REST == nil && o.Kubeconfig == "":
		return nil, errors.New("there is no API server")
	case o.Timeout < 0:
		return nil, errors.New("the timeout is negative")
	}
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	if o.Server == "" {
		o.Server = "the API server"
	}
	c := &Client{o: o, Reporter: kit.Reporter{Secrets: &redact.Keyring{Mark: "[secret]"}, Otherwise: kit.Passing}, Page: perPage, link: &link{}}
	if o.Kubeconfig != "" {
		return c, nil
	}
	return c, c.link.open(c, o.REST)
}

// Of returns a client for the objects of another API group that every API server serves.
func (c *Client) Of(apiVersion string) *Client {
	return c.In(apiVersion, "", "check that nothing answers instead of the API server")
}

// In returns a client for the objects of another API group, in a namespace. needs is Options.Needs
// for that group.
func (c *Client) In(apiVersion, namespace, needs string) *Client {
	other := *c
	other.o.APIVersion, other.o.Namespace, other.o.Needs = apiVersion, namespace, needs
	return &other
}

// place returns the path of the objects below the API server's URL.
func (c *Client) place() string {
	place := "apis/" + c.o.APIVersion
	if !strings.Contains(c.o.APIVersion, "/") {
		place = "api/" + c.o.APIVersion
	}
	if c.o.Namespace != "" {
		place += "/namespaces/" + c.o.Namespace
	}
	return place
}
