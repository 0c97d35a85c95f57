package redfish

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"time"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
)

// concern is whom a refusal is about, and so when to ask again.
type concern string

const (
	forMachine concern = "machine" // until a person acts
	forNow     concern = "passing"
	forAccount concern = "account" // the credentials, which other BMCs may have
)

// callError is one sentence for people: the node, what happened and what to do.
type callError struct {
	why   concern
	text  string
	again time.Duration // how long the BMC asks to be left alone
	cause error         // without secrets; may be nil
}

func (e *callError) Error() string { return e.text }

// Is finds the engine's errors about an account and about what passes in a moment, and what caused this one.
func (e *callError) Is(target error) bool {
	switch {
	case e.why == forAccount && target == engine.ErrAccount, e.why == forNow && e.again <= engine.ActAgain && target == engine.ErrPassing:
		return true
	}
	return e.cause != nil && errors.Is(e.cause, target)
}

// survey is a refusal as the answer to a question.
func (c *Client) survey(err error) remediations.Survey {
	s := remediations.Survey{Trouble: err.Error(), Again: remediations.AskMended}
	var e *callError
	if errors.As(err, &e) {
		switch e.why {
		case forNow:
			s.Again = max(remediations.AskPassing, e.again)
		case forAccount:
			s.Fleetwide = c.oneAccount()
		case forMachine:
		}
	}
	return s
}

// oneAccount says whether all BMCs have the same credentials.
func (c *Client) oneAccount() bool {
	var first *bmc
	for _, b := range c.bmcs {
		if first == nil {
			first = b
		}
		if b.UsernameFile != first.UsernameFile || b.PasswordFile != first.PasswordFile {
			return false
		}
	}
	return true
}

// explain says what a request that failed before the reset means.
func (k *call) explain(a answer) *callError {
	var pin errPin
	var untrusted *tls.CertificateVerificationError
	e := &callError{why: forMachine, cause: k.secrets.Error(a.err), again: a.retryAfter}
	switch {
	case errors.As(a.err, &pin), errors.As(a.err, &untrusted):
		e.text = "the BMC's certificate is not trusted; check caFile or fingerprint, and who answers there"
	case a.err != nil && a.status == 0:
		e.why, e.text = forNow, "the BMC did not answer "+a.sent+"; check the network between Drydock and the BMC"
	case a.status == http.StatusUnauthorized || a.status == http.StatusForbidden:
		e.why = forAccount
		e.text = fmt.Sprintf("the BMC refuses user name and password, or what they may do (HTTP %d to %s); these credentials are not used again for %s or until their files change, because accounts are locked after a few tries; correct %s and %s",
			a.status, a.sent, k.client.o.TryAgain, k.bmc.UsernameFile, k.bmc.PasswordFile)
	case a.status == http.StatusTooManyRequests || a.status >= http.StatusInternalServerError:
		e.why, e.text = forNow, fmt.Sprintf("the BMC cannot answer just now (HTTP %d to %s); check whether it has a free session, or must be restarted", a.status, a.sent)
	case a.page:
		e.text = fmt.Sprintf("what answers is not Redfish (HTTP %d to %s, and no JSON); check the BMC's url, and that no proxy answers in its place", a.status, a.sent)
	default:
		e.text = fmt.Sprintf("the BMC answered %s with HTTP %d; check its url and firmware", a.sent, a.status)
	}
	return e
}
