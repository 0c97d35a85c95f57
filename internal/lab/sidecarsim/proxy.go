package sidecarsim

import (
	"context"
	"net/http"
	"strings"
)

// Access is what a caller wants to do: a verb on the resource seinodetasks of sei.io, with the
// SeiNode's name.
type Access struct{ Namespace, SeiNode, Verb string }

// Verdict is the API server's answer about a caller.
type Verdict int

const (
	// Unknown means that the token has no owner.
	Unknown Verdict = iota
	Denied
	Allowed
)

// Review asks the API server who owns the token, and whether the owner has the right. An error
// means that the API server did not answer.
type Review func(ctx context.Context, token string, a Access) (user string, v Verdict, err error)

// The proxy allows these operations to every caller.
var free = map[Op]bool{Health: true, Livez: true, Metrics: true}

// If the proxy itself answers the call, the result is that answer and false.
func (s *Server) authorize(r *http.Request, p Pod, op Op, number int) (reply, bool) {
	if p.NoProxy || free[op] {
		return reply{}, true
	}
	token, sent := bearer(r)
	if !sent {
		return reply{status: http.StatusUnauthorized, body: text("Unauthorized")}, false
	}
	verb := "get"
	if r.Method == http.MethodPost {
		verb = "create"
	}
	user, verdict := "", Allowed
	if s.o.Review != nil {
		var err error
		// The review does not use the call's context, because the call is served even if the caller
		// has disconnected.
		if user, verdict, err = s.o.Review(s.stopping, token, Access{p.Namespace, p.SeiNode, verb}); err != nil {
			return reply{status: http.StatusInternalServerError, body: text("the API server cannot be asked")}, false
		}
	}
	s.amend(number, func(c *Call) { c.User = user })
	switch verdict {
	case Allowed:
		return reply{}, true
	case Denied:
		return reply{status: http.StatusForbidden, body: text("Forbidden (user=" + user + ", verb=" + verb + ", resource=seinodetasks)")}, false
	default:
		return reply{status: http.StatusUnauthorized, body: text("Unauthorized")}, false
	}
}

func bearer(r *http.Request) (token string, sent bool) {
	kind, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return token, strings.EqualFold(kind, "bearer") && token != ""
}
