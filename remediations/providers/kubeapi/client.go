package kubeapi

import (
	"errors"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"drydock.dev/drydock/internal/redact"
	"drydock.dev/drydock/remediations/providers/kit"
)

// defaultTimeout is far below the 10 s time limit for sending a call.
const defaultTimeout = 5 * time.Second

// Options name the API server and the objects.
type Options struct {
	// REST is the connection to the API server.
	REST *rest.Config
	// Kubeconfig is a file for the connection to another cluster's API server, used instead of
	// REST. It is read before each request, so that a new file counts at once.
	Kubeconfig string
	// Server is the API server's name in sentences; empty: the API server.
	Server string
	// APIVersion is the version of the objects, and Namespace their namespace; empty: they have
	// none.
	APIVersion, Namespace string
	// Needs says what must be installed so that the API server serves APIVersion.
	Needs string
	// Docs is the page that lists the rights.
	Docs string
	// Timeout bounds one request. Zero: 5 s.
	Timeout time.Duration
}

// Client sends requests for the objects of one group. It is safe for concurrent use.
type Client struct {
	// Reporter shows none of Drydock's credentials.
	kit.Reporter
	// Page is how many objects one page of a list has.
	Page int

	o    Options
	link *link
}

// New checks the options. It makes no request.
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

// Of returns the same client for the objects of another group, which is always served.
func (c *Client) Of(apiVersion string) *Client {
	return c.In(apiVersion, "", "check that nothing answers in its place")
}

// In returns the same client for the objects of another group in a namespace. needs says what must
// be installed so that the group is served.
func (c *Client) In(apiVersion, namespace, needs string) *Client {
	other := *c
	other.o.APIVersion, other.o.Namespace, other.o.Needs = apiVersion, namespace, needs
	return &other
}

// place is the path of the objects below the API server's own address.
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
