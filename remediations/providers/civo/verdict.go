package civo

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/civo/civogo"

	"drydock.dev/drydock/internal/bounded"
	"drydock.dev/drydock/remediations/providers/kit"
)

// A read succeeded only if the status is 2xx and civogo could decode the answer. asked names the
// requested data, for the error.
func (c *Client) readVerdict(t task, o outcome, asked string) error {
	switch {
	case o.keyError != nil:
		return c.refuse(t, reasonUnauthorized, o.keyError, "there is no API key")
	case errors.Is(o.transport, bounded.ErrTooLarge):
		return c.refuse(t, reasonBadAnswer, o.transport, "Civo's %s is unusable", asked)
	case o.transport != nil:
		return c.refuse(t, reasonUnreachable, o.transport, "the network does not answer: nothing came from Civo at %s", c.o.APIURL.Host)
	case o.unavailable():
		err := c.refuse(t, reasonUnavailable, o.err, "Civo's API cannot answer now: %s", o.kind())
		var refused *refusedError
		if errors.As(err, &refused) {
			refused.again = o.retryAfter
		}
		return err
	case o.err == nil:
		return nil
	case o.status == http.StatusUnauthorized, o.status/100 == 4 && !unreadable(o):
		return c.rejection(t, o)
	}
	return c.refuse(t, reasonBadAnswer, o.err, "the answer from %s is not Civo's API: %s instead of the %s", c.o.APIURL.Host, o.kind(), asked)
}

func (o outcome) kind() string {
	if o.page {
		return fmt.Sprintf("an HTML page with HTTP %d", o.status)
	}
	return fmt.Sprintf("HTTP %d", o.status)
}

// rejection gets only answers of Civo itself, and not of a proxy.
func (c *Client) rejection(t task, o outcome) error {
	why := c.reasonOf(o)
	switch why {
	case reasonUnknownCluster:
		// Civo gives the same answer if the cluster is in another region.
		return c.refuse(t, why, o.err, "unknown cluster, or wrong region: Civo has no cluster %s in region %s", c.o.ClusterID, c.o.Region)
	case reasonWrongRegion:
		return c.refuse(t, why, o.err, "wrong region: Civo has no region %s, or the region is unavailable", c.o.Region)
	case reasonNotFound:
		return c.refuse(t, why, o.err, "the instance no longer exists (Civo answered HTTP %d)", o.status)
	case reasonUnauthorized:
		return c.refuse(t, why, o.err, "Civo refuses the API key with HTTP %d", o.status)
	case reasonQuota:
		return c.refuse(t, why, o.err, "the account's quota at Civo is reached")
	default:
		return c.refuse(t, why, o.err, "Civo answered with HTTP %d", o.status)
	}
}

// writeVerdict returns a *refusedError if Civo certainly did nothing, and an *unknownError if that
// is not certain.
func (c *Client) writeVerdict(issue context.Context, t task, g *kit.Gate, o outcome) error {
	switch {
	case o.keyError != nil:
		return c.refuse(t, reasonUnauthorized, o.keyError, "there is no API key")
	case g.Withdraw(): // the request was not sent, and never will be
		if no := g.Forbidden(); no != nil {
			return c.refuse(t, reasonWithheld, no, "the request was not sent")
		}
		cause := o.transport
		if issue.Err() != nil {
			cause = issue.Err()
		}
		return c.refuse(t, reasonUnreachable, cause, "the request did not reach Civo at %s", c.o.APIURL.Host)
	case o.transport != nil:
		return c.doubt(t, o.transport, "the request was sent, but no complete answer came")
	case unreadable(o):
		// The answer is not from Civo's API, so its status proves nothing.
		return c.doubt(t, o.err, "the answer cannot be read: %s", o.kind())
	case o.status/100 == 4 && o.status != http.StatusRequestTimeout: // a proxy may answer 408 after the request has reached Civo
		return c.rejection(t, o)
	case o.status/100 != 2:
		return c.doubt(t, o.err, "Civo answered with HTTP %d", o.status)
	case o.err != nil:
		return c.doubt(t, o.err, "the answer cannot be read: %s", o.kind())
	case o.result.Result != civogo.ResultSuccess:
		return c.resultVerdict(t, o)
	}
	return nil
}

// A 2xx answer without a result is not from Civo, so the outcome is unknown.
func (c *Client) resultVerdict(t task, o outcome) error {
	r := o.result
	if r.Result == "" {
		return c.doubt(t, nil, "the answer, HTTP %d, has no result", o.status)
	}
	why := reasonRejected
	if r.ErrorCode == "quota_limit_reached" {
		why = reasonQuota
	}
	said := c.quote(fmt.Sprintf("%s %s %s %s", r.Result, r.ErrorCode, r.ErrorReason, r.ErrorDetails))
	return c.refuse(t, why, nil, "Civo's result is not success but %s", said)
}

func unreadable(o outcome) bool {
	return o.panicked || errors.Is(o.err, civogo.ResponseDecodeFailedError)
}

var sentinels = []struct {
	err    error
	reason reason
}{
	{civogo.QuotaLimitReachedError, reasonQuota},
	{civogo.AuthenticationError, reasonUnauthorized},
	{civogo.AuthenticationFailedError, reasonUnauthorized},
	{civogo.AuthenticationInvalidKeyError, reasonUnauthorized},
	{civogo.AuthenticationAccessDeniedError, reasonUnauthorized},
	{civogo.DatabaseAccountNotFoundError, reasonUnauthorized}, // the real API answers so to an unknown key
	{civogo.DatabaseAccountAccessDeniedError, reasonUnauthorized},
	{civogo.AccountNotEnabledIncCardError, reasonUnauthorized},
	{civogo.AccountNotEnabledWithoutCardError, reasonUnauthorized},
	{civogo.DatabaseKubernetesClusterNotFoundError, reasonUnknownCluster},
	{civogo.RegionUnavailableError, reasonWrongRegion},
	{civogo.DatabaseInstanceNotFoundError, reasonNotFound},
	{civogo.OpenstackInstanceFindError, reasonNotFound},
	{civogo.DatabaseKubernetesNodeNotFoundError, reasonNotFound},
}

func (c *Client) reasonOf(o outcome) reason {
	for _, s := range sentinels {
		if errors.Is(o.err, s.err) {
			return s.reason
		}
	}
	switch {
	case strings.Contains(o.err.Error(), "database_region_not_found"): // civogo has no error value for it
		return reasonWrongRegion
	case o.status == http.StatusTooManyRequests:
		return reasonUnavailable
	case o.status == http.StatusUnauthorized || o.status == http.StatusForbidden:
		return reasonUnauthorized
	}
	return reasonRejected
}
