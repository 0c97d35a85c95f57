package kubeapi

import (
	"errors"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"drydock.dev/drydock/internal/redact"
	"drydock.dev/drydock/remediations/providers/kit"
)

// defaultTimeout is far below 10 s: a call must be sent within this time after its intent is
// written on the Node.
const defaultTimeout = 5 * time.Second

// Options configure a Client.
type Options struct {
	// REST is the connection to the API server.
	REST *rest.Config
	// Kubeconfig is the path of a kubeconfig for another cluster, and replaces REST. It is read
	// before each request, so a changed file needs no restart.
	Kubeconfig string
	// Server is the API server's name in messages. The default is "the API server".
	Server string
	// Namespace is empty for objects without a namespace, and to list the objects of all
	// namespaces.
	APIVersion, Namespace string
	// Needs says in an error message what must be installed if the API server does not serve
	// APIVersion.
	Needs string
	// Docs is the page of the documentation that lists the rights that Drydock needs.
	Docs string
	// Timeout limits one request. The default is 5 s.
	Timeout time.Duration
}

// Client sends requests for the objects of one API group. It is safe for concurrent use.
type Client struct {
	// Reporter removes Drydock's credentials from errors.
	kit.Reporter
	// Page is the number of objects on one page of a list.
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

// Of returns a client for the objects of an API group that every API server serves, without a
// namespace.
func (c *Client) Of(apiVersion string) *Client {
	return c.In(apiVersion, "", "check that nothing answers instead of the API server")
}

// In returns a client for the objects of another API group in a namespace. needs is Options.Needs
// of the new client.
func (c *Client) In(apiVersion, namespace, needs string) *Client {
	other := *c
	other.o.APIVersion, other.o.Namespace, other.o.Needs = apiVersion, namespace, needs
	return &other
}

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
