package kubeapi

import (
	"errors"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"drydock.dev/drydock/internal/redact"
	"drydock.dev/drydock/remediations/providers/kit"
)

// defaultTimeout is far below the engine's limit: a call must be sent within 10 s after Drydock has
// written its intent on the Node.
const defaultTimeout = 5 * time.Second

// Options has the API server, and the API group and namespace of the client's objects.
type Options struct {
	// REST is the connection to the API server.
	REST *rest.Config
	// Kubeconfig is the path of a kubeconfig for another cluster's API server. If it is set, REST
	// is not used. The client reads the file before each request, so a changed file needs no
	// restart.
	Kubeconfig string
	// Server is the API server's name in messages. The default is "the API server".
	Server string
	// APIVersion is the API version of the client's objects. Namespace is their namespace. It is
	// empty for objects without a namespace, and to list the objects of all namespaces.
	APIVersion, Namespace string
	// Needs is the end of the error message if the API server does not serve APIVersion. It says
	// what must be installed.
	Needs string
	// Docs is the page of the documentation that lists the rights that Drydock needs. Error
	// messages name it.
	Docs string
	// Timeout limits one request. The default is 5 s.
	Timeout time.Duration
}

// Client sends requests for the objects of one API group. It is safe for concurrent use.
type Client struct {
	// Reporter makes sentences of errors, without Drydock's credentials.
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

// Of returns a client for the objects of another API group, without a namespace. It is only for a
// group that every API server serves.
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

// place returns the path of the client's API group and namespace in the API server's URLs.
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
