package kubeapi

import (
	"bytes"
	"errors"
	"net/http"
	"net/url"
	"sync"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"drydock.dev/drydock/internal/secretfile"
	"drydock.dev/drydock/remediations/providers/kit"
)

// maxKubeconfig is in bytes.
const maxKubeconfig = 1 << 20

// A client and all clients derived from it share one link.
type link struct {
	mu   sync.Mutex
	read []byte // the kubeconfig of the connection, if any
	at   *url.URL
	http http.RoundTripper
	base *http.Transport
}

func (l *link) open(c *Client, to *rest.Config) error {
	at, err := Address(to)
	if err != nil {
		return err
	}
	if to.Proxy != nil {
		if by, err := to.Proxy(&http.Request{URL: at}); err == nil && by != nil && by.User != nil {
			password, _ := by.User.Password()
			c.Secrets.AddPassword(by.User.Username(), password)
		}
	}
	wrapped, base, err := c.transport(to)
	if err != nil {
		return err
	}
	if l.base != nil {
		l.base.CloseIdleConnections()
	}
	l.at, l.http, l.base = at, wrapped, base
	return nil
}

// Address returns the API server's URL. Its errors do not contain the URL, because it may have a
// password.
func Address(to *rest.Config) (*url.URL, error) {
	at, _, err := rest.DefaultServerUrlFor(to)
	switch {
	case err != nil:
		return nil, errors.New("the API server's address is not a URL")
	case at.User != nil:
		return nil, errors.New("the API server's address has credentials in it; use a token or a client certificate")
	}
	return at, nil
}

// way reads the kubeconfig each time. It does not use the earlier content if the file is unusable,
// because a person may have revoked the access.
func (l *link) way(c *Client) (*url.URL, http.RoundTripper, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.o.Kubeconfig == "" {
		return l.at, l.http, nil
	}
	text, err := secretfile.Read("the kubeconfig", c.o.Kubeconfig, maxKubeconfig)
	if err != nil {
		return nil, nil, kit.Refuse(kit.Setup, "the kubeconfig of %s cannot be read: %v", c.o.Server, err)
	}
	if l.at != nil && bytes.Equal(text, l.read) {
		return l.at, l.http, nil
	}
	to, err := usable(text)
	if err == nil {
		err = l.open(c, to)
	}
	if err != nil {
		return nil, nil, kit.Refuse(kit.Setup, "the kubeconfig %s of %s cannot be used: %v", c.o.Kubeconfig, c.o.Server, err)
	}
	l.read = text
	return l.at, l.http, nil
}

// usable returns an error if the kubeconfig gets its credentials from a program, or does not check
// the server's certificate. Errors contain no text of the file, which has secrets.
func usable(text []byte) (*rest.Config, error) {
	to, err := clientcmd.RESTConfigFromKubeConfig(text)
	switch {
	case err != nil:
		return nil, errors.New("the file is not a kubeconfig with a current context")
	case to.ExecProvider != nil || to.AuthProvider != nil:
		return nil, errors.New("the file gets its credentials from a program or a plugin; put a token or a client certificate into it")
	case to.Insecure:
		return nil, errors.New("the file does not check the server's certificate (insecure-skip-tls-verify); put certificate-authority-data into it")
	}
	return to, nil
}
