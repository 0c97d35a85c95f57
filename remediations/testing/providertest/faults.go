package providertest

import (
	"fmt"
	"net/http"

	"drydock.dev/drydock/remediations"
)

// Kind is a kind of fault.
type Kind string

// These are all kinds of fault.
const (
	// Gone means that there is no listener when the request is sent, so it certainly does not
	// arrive.
	Gone Kind = "nobody listens"
	// Cut: the connection is closed without an answer.
	Cut Kind = "cut"
	// Hang: there is never an answer.
	Hang Kind = "hang"
	// Half: the connection is closed in the middle of an answer.
	Half Kind = "half an answer"
	// Garbage: the answer is complete and has a good status, but its body is only half a document.
	Garbage Kind = "half a document"
	// Endless: the body of the answer never ends.
	Endless Kind = "endless body"
	// EndlessHeader: the header of the answer never ends.
	EndlessHeader Kind = "endless header"
	// Trickle: the body comes byte by byte, and never ends.
	Trickle Kind = "trickle"
	// Page: the answer is an HTML page, like that of a proxy between the provider and its backend.
	Page Kind = "page"
	// Redirect: the answer redirects to another address. RedirectHere: it redirects to the
	// requested address.
	Redirect     Kind = "redirect"
	RedirectHere Kind = "redirect to itself"
	// Slow: the answer is good, but late.
	Slow Kind = "slow"
	// Answer: the API itself answers with an error of the fault's status.
	Answer Kind = "answer"
)

// Fault is a fault that a simulated backend shows for a request.
type Fault struct {
	Kind   Kind
	Status int // for Page, Redirect and Answer
	// The backend does the requested work before the fault.
	Done bool
	// Put into the answer wherever it has room for a text.
	Text string
}

// String returns the fault's name for the name of a test.
func (f Fault) String() string {
	s := string(f.Kind)
	if f.Status != 0 {
		s = fmt.Sprintf("%s %d", s, f.Status)
	}
	if f.Done {
		s += " after the work"
	}
	return s
}

// In seconds, for the statuses 429 and 503.
const retryAfter = 90

func faults() []Fault {
	all := []Fault{
		{Kind: Gone},
		{Kind: Cut}, {Kind: Cut, Done: true},
		{Kind: Hang}, {Kind: Hang, Done: true},
		{Kind: Half, Done: true}, {Kind: Garbage, Done: true},
		{Kind: Endless, Done: true}, {Kind: EndlessHeader, Done: true}, {Kind: Trickle, Done: true},
	}
	for _, status := range []int{200, 401, 403, 404, 502} {
		all = append(all, Fault{Kind: Page, Status: status}, Fault{Kind: Page, Status: status, Done: true})
	}
	for _, status := range []int{301, 302, 303, 307, 308} {
		all = append(all, Fault{Kind: Redirect, Status: status}, Fault{Kind: RedirectHere, Status: status, Done: true})
	}
	for _, status := range []int{400, 401, 403, 404, 409, 412, 429} {
		all = append(all, Fault{Kind: Answer, Status: status})
	}
	for _, status := range []int{500, 502, 503, 504} {
		all = append(all, Fault{Kind: Answer, Status: status}, Fault{Kind: Answer, Status: status, Done: true})
	}
	return all
}

// What Act must report if the request for the change meets the fault: the outcome, and whether the
// error must be engine.ErrAccount.
func (f Fault) demanded(p Provider) (outcome remediations.CallOutcome, account bool) {
	if f.Kind == Gone || f.Kind == Answer && f.Status < http.StatusInternalServerError {
		return remediations.CallRefused, f.refusesAccount(p)
	}
	return remediations.CallUnknown, false
}

// The API refuses the caller's account for all machines.
func (f Fault) refusesAccount(p Provider) bool {
	return !p.PerMachine && f.Kind == Answer && (f.Status == http.StatusUnauthorized || f.Status == http.StatusForbidden)
}

// The request never gets a complete answer, so only a time limit or the caller ends it.
func (f Fault) silent() bool { return f.Kind == Hang || f.Kind == Trickle }
