package main

import (
	"errors"
	"fmt"
	"net/url"
)

// starting says what the program was doing. If the API server did not answer, it says what to
// check, and leaves out client-go's text about API discovery.
func (p *program) starting(doing string, err error) error {
	var request *url.Error
	if !errors.As(err, &request) {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return fmt.Errorf("the API server at %s does not answer: %w; check that the address is right, that the control plane runs, and that no firewall or NetworkPolicy is in the way", p.rest.Host, request.Err)
}
