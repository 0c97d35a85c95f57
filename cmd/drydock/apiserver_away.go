package main

import (
	"errors"
	"fmt"
	"net/url"
)

// starting says why Drydock cannot start. An API server that gave no answer at all is named as such: how the client looks for
// its resources helps nobody.
func (p *program) starting(doing string, err error) error {
	var request *url.Error
	if !errors.As(err, &request) {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return fmt.Errorf("the API server at %s does not answer: %w; check that the address is right, that the control plane runs, and that no firewall or NetworkPolicy is in the way", p.rest.Host, request.Err)
}
