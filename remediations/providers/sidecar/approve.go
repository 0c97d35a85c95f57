package sidecar

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/providers/sidecar/settings"
)

var errNoWord = errors.New("the caller gave no last check")

// Approve looks once more, and requires that Look allows the approval and that the pod and its node
// are the same. Then it calls mayStill, and sends the approval, once. Nil: it was accepted; the
// answer shows no more, and the next look shows whether the gate is open. A *refusedError:
// certainly nothing was approved. Any other error: perhaps.
//
// Its task is a UUID that was never used before. A sidecar remembers all UUIDs for ever, and
// answers a known one as if it were new, without doing anything.
func (c *Client) Approve(ctx context.Context, asked engine.Approval, mayStill func() error) error {
	taskID := asked.Task
	a := &attempt{pod: asked.Pod, tokens: c.tokens}
	if id, err := uuid.Parse(taskID); err != nil || id.String() != taskID {
		return a.refuse(reasonRejected, nil, "the task's id %q is not a UUID in its usual form", clip(taskID))
	}
	if mayStill == nil {
		return a.refuse(reasonWithheld, errNoWord, "it is unknown whether the approval is still allowed")
	}
	var at target
	a.saw, at = c.look(ctx, asked.Pod)
	if why := against(&a.saw, asked); why != "" {
		return a.refuse(reasonChanged, nil, "%s", why)
	}
	ctx, cancel := context.WithTimeout(ctx, c.o.ApproveTimeout)
	defer cancel()
	if c.o.Via == settings.ViaSeiNodeTask {
		return c.createTask(ctx, a, taskID, mayStill)
	}
	return c.post(ctx, a, at, taskID, mayStill)
}

// post approves by HTTP. Until its last few lines only a TCP connection was opened, so all earlier
// errors are certain refusals.
func (c *Client) post(ctx context.Context, a *attempt, at target, taskID string, mayStill func() error) error {
	body := strings.ReplaceAll(c.o.ApproveBody, settings.Placeholder, taskID)
	req, err := http.NewRequestWithContext(ctx, c.o.ApproveMethod, c.url(at, c.o.ApprovePath), strings.NewReader(body))
	if err != nil {
		return a.refuse(reasonRejected, err, "the request cannot be made")
	}
	if json.Valid([]byte(body)) {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.o.Token != nil {
		token, err := c.token(ctx)
		if err != nil {
			return a.refuse(reasonUnauthorized, err, "there is no token to send")
		}
		req.Header.Set("Authorization", "Bearer "+token)
	}
	conn, err := c.connect(ctx, at)
	if err != nil {
		return a.refuse(reasonFailed, err, "there is no connection to %s", at.addr)
	}
	if err := lastCheck(ctx, mayStill); err != nil {
		_ = conn.Close()
		return a.refuse(reasonWithheld, err, "the approval is no longer allowed")
	}
	got, err := exchange(conn, req)
	if err != nil {
		return a.doubt(err, "no answer came from %s", at.addr)
	}
	return c.verdict(a, got)
}

// lastCheck calls mayStill, and checks whether there is still time.
func lastCheck(ctx context.Context, mayStill func() error) error {
	if err := mayStill(); err != nil {
		return err
	}
	return ctx.Err()
}

// verdict returns the meaning of the answer to an approval. Its code is enough: the code comes
// before the rest.
func (c *Client) verdict(a *attempt, got reply) error {
	text := said(answerText(c.tokens, got.body))
	switch {
	case slices.Contains(c.o.ApproveCodes, got.status):
		return nil
	case got.status == http.StatusUnauthorized:
		return a.refuse(reasonUnauthorized, nil, "it answered 401%s; %s", text, c.unauthorized(a))
	case got.status == http.StatusForbidden:
		return a.refuse(reasonUnauthorized, nil, "it answered 403%s; %s", text, forbidden(a))
	case got.status >= 400 && got.status < 500:
		return a.refuse(reasonRejected, nil, "it answered %d%s", got.status, text)
	}
	return a.doubt(nil, "it answered %d%s", got.status, text)
}

func (c *Client) unauthorized(a *attempt) string {
	if c.o.Token == nil {
		return "it wants a token, and the sidecar provider " + c.o.Name + " has none configured"
	}
	return "it does not accept the token of the sidecar provider " + c.o.Name + ": check its owner and its audience, and that the pod's proxy may review tokens" + ownerHint(a)
}

func forbidden(a *attempt) string {
	if a.saw.Owner == (remediations.Object{}) {
		return "the token's ServiceAccount lacks the right that the pod's proxy asks for"
	}
	return fmt.Sprintf("the token's ServiceAccount lacks the right to create seinodetasks.sei.io of the name %s in namespace %s, which the pod's proxy asks for",
		a.saw.Owner.Name, a.saw.Owner.Namespace)
}

// ownerHint names the right that is needed next.
func ownerHint(a *attempt) string {
	if a.saw.Owner == (remediations.Object{}) {
		return ""
	}
	return fmt.Sprintf("; its ServiceAccount needs the right to create seinodetasks.sei.io of the name %s", a.saw.Owner.Name)
}
