package kubeapi

import (
	"errors"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"drydock.dev/drydock/internal/redact"
)

// defaultTimeout is far below the 10 s in which a call must go out.
const defaultTimeout = 5 * time.Second

// Options say what is asked, and of whom.
type Options struct {
	// REST is how the API server is reached.
	REST *rest.Config
	// Kubeconfig is a file that says so instead, of another cluster. It is read before each request, so that a new one counts at once.
	Kubeconfig string
	// Server is what the API server is called; empty: the API server.
	Server string
	// APIVersion is that of the objects, and Namespace where they are; empty: in none.
	APIVersion, Namespace string
	// Needs says what must be there for the API server to serve APIVersion.
	Needs string
	// Docs is the page that has the rights.
	Docs string
	// Timeout bounds one request. Zero: 5 s.
	Timeout time.Duration
}

// Client asks for the objects of one group. It is safe for concurrent use.
type Client struct {
	// Secrets prove who Drydock is. No text shows them.
	Secrets *redact.Keyring
	// Page is how many objects one page of a list has.
	Page int

	o    Options
	link *link
}

// New checks the options. It asks nobody.
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
	c := &Client{o: o, Secrets: &redact.Keyring{Mark: "[secret]"}, Page: perPage, link: &link{}}
	if o.Kubeconfig != "" {
		return c, nil
	}
	return c, c.link.open(c, o.REST)
}

// Of is the same client for the objects of another group, which is always served.
func (c *Client) Of(apiVersion string) *Client {
	return c.In(apiVersion, "", "check that nothing answers in its place")
}

// In is the same client for the objects of another group in a namespace. needs says what must be there for the group to be served.
func (c *Client) In(apiVersion, namespace, needs string) *Client {
	other := *c
	other.o.APIVersion, other.o.Namespace, other.o.Needs = apiVersion, namespace, needs
	return &other
}

// place is where the objects are, below the API server's own address.
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
