package sidecarsim

import (
	"context"
	"net/http"
	"strings"
)

// Access is what a caller wants to do: a verb on the seinodetasks of sei.io
// under the SeiNode's name.
type Access struct{ Namespace, SeiNode, Verb string }

// Verdict is what the API server says of a caller.
type Verdict int

const (
	// Unknown callers show a token that is nobody's.
	Unknown Verdict = iota
	// Denied callers are known and have no right to it.
	Denied
	// Allowed callers pass.
	Allowed
)

// Review asks the API server whose the token is, and whether they may. An error
// is that of asking.
type Review func(ctx context.Context, token string, a Access) (user string, v Verdict, err error)

// free are the paths that the proxy lets everybody ask.
var free = map[Op]bool{Health: true, Livez: true, Metrics: true}

// authorize returns what the proxy answers in the sidecar's place, if it does.
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
		// The caller may have gone, and be heard all the same.
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
