package redfish

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"

	"drydock.dev/drydock/internal/bounded"
	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/providers/kit"
)

// Refused credentials concern all machines only if all BMCs are configured with the same
// credentials.
func (c *Client) survey(e *kit.Refusal) remediations.Survey {
	s := e.Survey()
	s.Fleetwide = s.Fleetwide && (e.Why == kit.Passing || c.oneAccount())
	return s
}

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

// Message IDs of Redfish and of vendors, without the name of their registry.
var (
	sessionLimit = []string{"SessionLimitExceeded", "CreateLimitReachedForResource", "RAC0218"}
	starting     = []string{"ServerPOSTInProgress", "SystemPOSTInProgress", "UnableToModifyDuringSystemPOST"}
	privilege    = []string{"InsufficientPrivilege", "InsufficientPrivilegeForProperty", "ResourceAtUriInsufficientPrivilege"}
)

func (a answer) says(messages []string) bool {
	return slices.ContainsFunc(a.messages, func(id string) bool {
		name := id[strings.LastIndex(id, ".")+1:]
		return slices.ContainsFunc(messages, func(m string) bool { return strings.EqualFold(m, name) })
	})
}

// The reason from explain concerns only this BMC.
func (k *call) explain(a answer) *kit.Refusal {
	if a.err != nil && a.status == 0 {
		return k.unanswered(a)
	}
	e := &kit.Refusal{Why: kit.Unreached, Again: a.retryAfter}
	switch {
	case a.says(sessionLimit):
		e.Text = fmt.Sprintf("the BMC has no free session (HTTP %d to %s); close sessions, or set auth to basic", a.status, a.sent)
	case a.says(starting):
		e.Again = max(e.Again, remediations.AskPassing)
		e.Text = fmt.Sprintf("the BMC reports that the machine is still starting (HTTP %d to %s); Drydock tries again", a.status, a.sent)
	case a.status == http.StatusForbidden, a.status == http.StatusUnauthorized && a.says(privilege):
		e.NeedsPerson = true
		e.Text = fmt.Sprintf("the BMC does not allow the account %s (HTTP %d); give the account of %s the role Operator on this BMC (privileges Login and ConfigureComponents)",
			a.sent, a.status, k.bmc.UsernameFile)
	case a.status == http.StatusUnauthorized:
		return k.unauthorized(a)
	case a.status == http.StatusTooManyRequests || a.status >= http.StatusInternalServerError && a.status != http.StatusNotImplemented:
		e.Text = fmt.Sprintf("the BMC cannot answer now (HTTP %d to %s); check whether it has a free session, or must be restarted", a.status, a.sent)
	case a.page:
		e.Why = kit.Machine
		e.Text = fmt.Sprintf("the answer is not Redfish (HTTP %d to %s, not JSON); check the BMC's url, and that no proxy answers instead of the BMC", a.status, a.sent)
	default:
		e.Why, e.Text = kit.Machine, fmt.Sprintf("the BMC answered %s with HTTP %d; check its url and firmware", a.sent, a.status)
	}
	return e
}

// Some BMCs occasionally refuse good credentials, so after the first refusal they are tried again
// later.
func (k *call) unauthorized(a answer) *kit.Refusal {
	e := &kit.Refusal{Why: kit.Unreached, Again: max(a.retryAfter, remediations.AskPassing)}
	e.Text = fmt.Sprintf("the BMC refuses the user name or password (HTTP 401 to %s); correct %s and %s", a.sent, k.bmc.UsernameFile, k.bmc.PasswordFile)
	if k.bmc.Auth == Basic {
		e.Text += "; if the BMC does not accept basic authentication, set auth to session"
	}
	if k.client.refusedBy(k.bmc, k.with) < timesRefused {
		e.Text += "; some BMCs occasionally refuse good credentials, so Drydock tries this BMC once more"
		return e
	}
	e.NeedsPerson, e.Text = true, e.Text+fmt.Sprintf("; BMCs lock accounts after a few tries, so Drydock does not use these credentials there for %s or until their files change", text.Duration(k.client.o.TryAgain))
	return e
}

func (k *call) unanswered(a answer) *kit.Refusal {
	var pin errPin
	var untrusted *tls.CertificateVerificationError
	var ours errOurs
	var late net.Error
	e := &kit.Refusal{Why: kit.Unreached, Cause: k.secrets.Error(a.err), Again: a.retryAfter}
	switch {
	case errors.As(a.err, &pin), errors.As(a.err, &untrusted):
		e.NeedsPerson, e.Text = true, "the BMC's certificate is not trusted; check caFile or fingerprint, and which machine answers at its url"
	case strings.Contains(a.err.Error(), "tls: ") || strings.Contains(a.err.Error(), "x509: "):
		e.NeedsPerson, e.Text = true, "the TLS handshake with the BMC failed: its certificate is unreadable, or it does not support TLS 1.2 with a modern key exchange; renew the certificate, or update its firmware"
	case errors.As(a.err, &ours), errors.Is(a.err, bounded.ErrTooLarge):
		e.Why, e.Text = kit.Machine, "Drydock rejects the BMC's answer to "+a.sent+"; check the BMC's url and firmware"
	case errors.Is(a.err, context.DeadlineExceeded), errors.As(a.err, &late) && late.Timeout():
		e.Text = "the BMC did not answer " + a.sent + " in time; it is too slow, or the network between Drydock and the BMC is interrupted"
	default:
		e.Text = "the BMC did not answer " + a.sent + "; check the network between Drydock and the BMC"
	}
	return e
}

// errOurs is the reason why this package does not send a request, or rejects an answer.
type errOurs string

func (e errOurs) Error() string { return string(e) }
