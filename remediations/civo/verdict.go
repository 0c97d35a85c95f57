package civo

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/civo/civogo"
)

// readVerdict judges a call that changes nothing: nil or a *RefusedError.
func (c *Client) readVerdict(t task, o outcome) error {
	switch {
	case o.keyError != nil:
		return c.refuse(t, Unauthorized, o.keyError, "there is no API key")
	case errors.Is(o.transport, errTooBig):
		return c.refuse(t, BadAnswer, o.transport, "Civo's list of instances is no list")
	case o.transport != nil:
		return c.refuse(t, Unreachable, o.transport, "Civo at %s did not answer", c.api.Host)
	case o.err == nil:
		return nil
	case o.status == http.StatusUnauthorized, o.status/100 == 4 && !unreadable(o):
		return c.refuse(t, c.reasonOf(o), o.err, "Civo answered with HTTP %d", o.status)
	}
	return c.refuse(t, BadAnswer, o.err, "Civo answered with HTTP %d, and not with a list of instances", o.status)
}

// writeVerdict judges a write: nil, *RefusedError, or *UnknownError wherever it
// is not certain that nothing was done.
func (c *Client) writeVerdict(t task, g *gate, o outcome) error {
	switch {
	case o.keyError != nil:
		return c.refuse(t, Unauthorized, o.keyError, "there is no API key")
	case g.withdraw(): // true: it has not left
		if g.forbidden != nil {
			return c.refuse(t, Withheld, g.forbidden, "the request was not sent")
		}
		cause := o.transport
		if err := g.issue.Err(); err != nil {
			cause = err
		}
		return c.refuse(t, Unreachable, cause, "the request did not reach Civo at %s", c.api.Host)
	case o.transport != nil:
		return c.doubt(t, o.transport, "the request left and no whole answer came")
	case unreadable(o):
		// Whoever wrote this is not Civo's API, so its status proves nothing.
		return c.doubt(t, o.err, "the answer, HTTP %d, cannot be read", o.status)
	case o.status/100 == 4:
		return c.refuse(t, c.reasonOf(o), o.err, "Civo answered with HTTP %d", o.status)
	case o.status/100 != 2:
		return c.doubt(t, o.err, "Civo answered with HTTP %d", o.status)
	case o.err != nil:
		return c.doubt(t, o.err, "the answer, HTTP %d, cannot be read", o.status)
	case o.result.Result != civogo.ResultSuccess:
		return c.resultVerdict(t, o)
	}
	return nil
}

// resultVerdict judges an HTTP 200 that is no success. An answer without a result
// is not Civo's, and proves nothing.
func (c *Client) resultVerdict(t task, o outcome) error {
	r := o.result
	if r.Result == "" {
		return c.doubt(t, nil, "the answer, HTTP %d, has no result", o.status)
	}
	why := Rejected
	if r.ErrorCode == "quota_limit_reached" {
		why = Quota
	}
	said := redact(fmt.Sprintf("%s %s %s %s", r.Result, r.ErrorCode, r.ErrorReason, r.ErrorDetails), o.key)
	return c.refuse(t, why, nil, "Civo's result is no success but %q", said)
}

// unreadable reports an error answer that civogo could not take apart.
func unreadable(o outcome) bool {
	return o.panicked || errors.Is(o.err, civogo.ResponseDecodeFailedError)
}

var sentinels = []struct {
	err    error
	reason Reason
}{
	{civogo.QuotaLimitReachedError, Quota},
	{civogo.AuthenticationError, Unauthorized},
	{civogo.AuthenticationFailedError, Unauthorized},
	{civogo.AuthenticationInvalidKeyError, Unauthorized},
	{civogo.AuthenticationAccessDeniedError, Unauthorized},
	{civogo.DatabaseAccountNotFoundError, Unauthorized}, // what the real API says to a key of nobody
	{civogo.DatabaseKubernetesClusterNotFoundError, UnknownCluster},
	{civogo.RegionUnavailableError, WrongRegion},
	{civogo.DatabaseInstanceNotFoundError, NotFound},
	{civogo.OpenstackInstanceFindError, NotFound},
	{civogo.DatabaseKubernetesNodeNotFoundError, NotFound},
}

// reasonOf sorts a 4xx answer that civogo could read.
func (c *Client) reasonOf(o outcome) Reason {
	for _, s := range sentinels {
		if errors.Is(o.err, s.err) {
			return s.reason
		}
	}
	switch {
	case strings.Contains(o.err.Error(), "database_region_not_found"): // civogo has no name for it
		return WrongRegion
	case o.status == http.StatusUnauthorized || o.status == http.StatusForbidden:
		return Unauthorized
	}
	return Rejected
}
