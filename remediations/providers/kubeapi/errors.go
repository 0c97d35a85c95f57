// Package kubeapi sends providers' requests about machines to the API server. Each request is sent
// once and is never redirected. Its time and the size of its answer are limited. A request that
// changes something has a last check right before it is sent.
//
// client-go repeats requests, follows redirects, and reads answers of any size. So this package
// uses client-go only for Drydock's credentials. Each error says which machines it concerns.
package kubeapi

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/internal/bounded"
	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations/providers/kit"
)

// The API server answers this to a write or deletion with an old resourceVersion.
var changed = regexp.MustCompile(`[Tt]he object (has been|might have been) modified`)

// Explain returns why an answer is not a success.
func (c *Client) Explain(r Request, a Answer) *kit.Refusal {
	e := &kit.Refusal{Why: kit.Setup, Again: a.Again}
	if a.Err != nil && errors.As(a.Err, &e) {
		return e
	}
	switch said := ""; {
	case errors.Is(a.Err, bounded.ErrTooLarge):
		e.Text, e.Cause = fmt.Sprintf("Drydock rejects the answer to %s; check that nothing answers instead of %s", r, c.o.Server), c.Secrets.Error(a.Err)
	case a.Err != nil:
		e.Why, e.Text, e.Cause = kit.Passing, c.o.Server+" did not answer "+r.String(), c.Secrets.Error(a.Err)
	case a.Own == nil && a.Status == http.StatusNotFound:
		e.Text = fmt.Sprintf("%s does not serve %s (HTTP 404 to %s); %s", c.o.Server, c.o.APIVersion, r, c.o.Needs)
	case a.Own == nil && a.Status < http.StatusInternalServerError:
		e.Text = fmt.Sprintf("the answer is not from %s (HTTP %d to %s); check that nothing answers in its place", c.o.Server, a.Status, r)
	case a.Own == nil:
		e.Why, e.Text = kit.Passing, fmt.Sprintf("%s cannot answer now (HTTP %d to %s)", c.o.Server, a.Status, r)
	default:
		said = c.Quote(a.Own.Message)
		switch {
		case strings.HasPrefix(a.Own.Message, "admission webhook "):
			e.Why, e.Text = kit.Machine, fmt.Sprintf("a webhook of the cluster denies %s: %s", r, said)
		case a.Status == http.StatusUnauthorized || a.Status == http.StatusForbidden:
			e.Why, e.Text = kit.Account, fmt.Sprintf("%s refuses Drydock's account, or the account lacks a right (HTTP %d to %s): %s; %s lists the rights that Drydock needs", c.o.Server, a.Status, r, said, c.o.Docs)
		case a.Own.Reason == metav1.StatusReasonConflict && changed.MatchString(a.Own.Message):
			e.Why, e.Text = kit.While, fmt.Sprintf("nothing was done, because the object of %s has changed since Drydock read it", r)
		case a.Status == http.StatusTooManyRequests || a.Status >= http.StatusInternalServerError:
			e.Why, e.Text = kit.Passing, fmt.Sprintf("%s cannot answer now (HTTP %d to %s): %s", c.o.Server, a.Status, r, said)
		default:
			e.Why, e.Text = kit.Machine, fmt.Sprintf("%s refuses %s (HTTP %d): %s", c.o.Server, r, a.Status, said)
		}
	}
	return e
}

// Quote makes a text of another program safe for a message: one quoted line, without secrets.
func (c *Client) Quote(s string) string { return fmt.Sprintf("%q", text.Line(c.Secrets.Hide(s), 200)) }
