package ui

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"drydock.dev/drydock/internal/actions"
	"drydock.dev/drydock/internal/inspect"
)

type word struct {
	Name       string              `json:"name"`
	Will       string              `json:"will"`
	Command    string              `json:"command"`
	Parameters []actions.Parameter `json:"parameters,omitempty"`
	// Allowed says which rights the user has for the action, and what grants them.
	Allowed string `json:"allowed,omitempty"`
	// Denied is the right that the user lacks. Refused is why the action makes no sense now.
	Denied  string `json:"denied,omitempty"`
	Refused string `json:"refused,omitempty"`
}

// Offered reports whether the page shows a button for the action.
func (w word) Offered() bool { return w.Denied == "" && w.Refused == "" }

func (u *UI) words(ctx context.Context, n *corev1.Node, verbs bool) []word {
	out := []word{}
	for _, a := range actions.All() {
		w := word{Name: a.Name, Will: a.Will, Command: a.Command(n.Name, nil), Parameters: a.Parameters}
		if err := a.Refuses(n); err != nil {
			w.Refused = err.Error()
		}
		if !u.ReadOnly {
			if rights, err := a.Rights(ctx, u.Reader, n.Name, verbs); err == nil { // after an error, the API server decides at the request
				if w.Denied = actions.Lacking(rights); w.Denied == "" {
					w.Allowed = actions.Given(rights)
				}
			}
		}
		out = append(out, w)
	}
	return out
}

type asked struct {
	Params actions.Params `json:"params"`
	DryRun bool           `json:"dryRun"`
	// Click is the number in the answer to the dry run. A write needs it.
	Click string `json:"click,omitempty"`
}

// Answer is the result of an action.
type Answer struct {
	// Said says in one sentence what was done, or what would be done.
	Said   string `json:"said"`
	DryRun bool   `json:"dryRun"`
	// Command is the plugin's command for the same request.
	Command string `json:"command"`
	// Click is the number that the write after this dry run needs. It is valid once.
	Click string `json:"click,omitempty"`
}

// word handles POST /nodes/NAME/words/WORD. The page must first send the same request with dryRun.
// The answer has a number, which the write must send.
func (u *UI) word(w http.ResponseWriter, r *http.Request) {
	refuse := func(code int, title, why string) {
		u.problem(w, r, code, title, u.Reader.Cluster.Says(why))
	}
	name, _, ok := nodeName(r)
	a := actions.Named(r.PathValue("word"))
	if !ok || a == nil {
		refuse(http.StatusNotFound, "No such action", "There is no such action on a node.")
		return
	}
	if u.ReadOnly {
		refuse(http.StatusForbidden, "Read only",
			"The page was started with --read-only, so it changes nothing. Start it without that flag, or run the command in a terminal.")
		return
	}
	var in asked
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(&in); err != nil {
		refuse(http.StatusBadRequest, "Not understood", "The request's body is not valid: "+plain(err.Error()))
		return
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		refuse(http.StatusBadRequest, "Not understood", "The request's body has more than one JSON value.")
		return
	}
	prepared, err := a.Prepare(in.Params, u.Reader.Now())
	if err != nil {
		refuse(http.StatusUnprocessableEntity, "Not accepted", inspect.Sentence(err))
		return
	}
	switch denied, err := a.Denied(r.Context(), u.Reader, name, u.Reader.AsksForVerbs(r.Context())); {
	case err != nil:
		refuse(http.StatusBadGateway, "Rights unknown", inspect.Sentence(err))
		return
	case denied != "":
		refuse(http.StatusForbidden, "Not allowed", "Nothing was written: "+denied)
		return
	}
	if in.DryRun {
		out := u.asks(r.Context(), prepared, a, name, &in, nil)
		u.writeJSON(w, out.code, out.body)
		return
	}
	of, first := u.clicks.take(in.Click, name, a.Name, in.Params, u.Reader.Now())
	switch {
	case of == nil:
		refuse(http.StatusConflict, "Not tried", "Nothing was written: this change was not tried first, or too long ago. Try it again.")
		return
	case first: // the write continues even if the browser disconnects, and its result stays readable
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), writeWithin)
		of.end(u.asks(ctx, prepared, a, name, &in, &of.subject))
		cancel()
	}
	select {
	case <-of.done:
		u.writeJSON(w, of.outcome.code, of.outcome.body)
	case <-r.Context().Done():
	}
}

// asks runs the action, as a dry run if in.DryRun is set. tried is the Node and the repair of the
// earlier dry run. It is nil if this call is the dry run.
func (u *UI) asks(ctx context.Context, prepared *actions.Prepared, a *actions.Action, node string, in *asked, tried *actions.Subject) outcome {
	problem := func(code int, why string, unknown bool) outcome {
		return outcome{code, problem{plain(u.Reader.Cluster.Says(why)), unknown}}
	}
	w := &actions.Writer{Client: u.Reader, DryRun: in.DryRun, Tried: tried}
	said, err := prepared.Apply(ctx, w, node)
	var unknown actions.Unknown
	switch {
	case errors.As(err, &unknown):
		return problem(http.StatusGatewayTimeout, err.Error(), true)
	case err != nil:
		return problem(refusalOf(err), inspect.Sentence(err), false)
	}
	answer := Answer{Said: plain(u.Reader.Cluster.Says(said)), DryRun: in.DryRun, Command: a.Command(node, in.Params)}
	if in.DryRun {
		answer.Click = u.clicks.offer(&click{node: node, word: a.Name, params: in.Params, subject: w.Of(), at: u.Reader.Now()})
	}
	return outcome{http.StatusOK, answer}
}

// refusalOf returns the API server's own code, or else 409, because the node is not in the state
// that the action needs.
func refusalOf(err error) int {
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Code >= http.StatusBadRequest {
		return int(status.Status().Code)
	}
	return http.StatusConflict
}

// command handles GET /nodes/NAME/words/WORD: the plugin's command for the values of the form.
func (u *UI) command(w http.ResponseWriter, r *http.Request) {
	name, _, ok := nodeName(r)
	a := actions.Named(r.PathValue("word"))
	if !ok || a == nil {
		u.problem(w, r, http.StatusNotFound, "No such action", "There is no such action on a node.")
		return
	}
	given := actions.Params{}
	for _, p := range a.Parameters {
		given[p.Name] = r.URL.Query().Get(p.Name)
	}
	u.writeJSON(w, http.StatusOK, Answer{Command: a.Command(name, given)})
}
