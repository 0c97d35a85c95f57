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

var errNoWord = errors.New("the caller has no last check")

// Approve observes the pod again. It sends the approval only if the observation allows it, and if
// the pod and its node are still those in asked. Right before it sends the approval, it calls
// mayStill, the caller's last check, once.
//
// Nil means that the approval was accepted. Only the next observation shows whether the gate is
// open, that is, whether the main container may start. A *refusedError means that certainly nothing
// was approved. Any other error means that the approval may have arrived.
//
// asked.Task must be a UUID that was never used before. A sidecar remembers all UUIDs. It answers a
// known UUID like a new one, but does nothing.
func (c *Client) Approve(ctx context.Context, asked engine.Approval, mayStill func() error) error {
	taskID := asked.Task
	a := &attempt{pod: asked.Pod, tokens: c.tokens}
	if id, err := uuid.Parse(taskID); err != nil || id.String() != taskID {
		return a.refuse(reasonRejected, nil, "the task's ID %q is not a UUID in the usual form", clip(taskID))
	}
	if mayStill == nil {
		return a.refuse(reasonWithheld, errNoWord, "Drydock cannot check whether the approval is still allowed")
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

// Before post calls exchange, it only opens a connection, so an error before exchange means that
// certainly nothing was approved.
func (c *Client) post(ctx context.Context, a *attempt, at target, taskID string, mayStill func() error) error {
	body := strings.ReplaceAll(c.o.ApproveBody, settings.Placeholder, taskID)
	req, err := http.NewRequestWithContext(ctx, c.o.ApproveMethod, c.url(at, c.o.ApprovePath), strings.NewReader(body))
	if err != nil {
		return a.refuse(reasonRejected, err, "the request is invalid")
	}
	if json.Valid([]byte(body)) {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.o.Token != nil {
		token, err := c.token(ctx)
		if err != nil {
			return a.refuse(reasonUnauthorized, err, "the token cannot be read")
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

// lastCheck also returns an error if ctx has ended.
func lastCheck(ctx context.Context, mayStill func() error) error {
	if err := mayStill(); err != nil {
		return err
	}
	return ctx.Err()
}

// Only the status code counts, so an incomplete body does not matter.
func (c *Client) verdict(a *attempt, got reply) error {
	text := said(answerText(c.tokens, got.body))
	switch {
	case slices.Contains(c.o.ApproveCodes, got.status):
		return nil
	case got.status == http.StatusUnauthorized:
		return a.refuse(reasonUnauthorized, nil, "the sidecar answered 401%s; %s", text, c.unauthorized(a))
	case got.status == http.StatusForbidden:
		return a.refuse(reasonUnauthorized, nil, "the sidecar answered 403%s; %s", text, forbidden(a))
	case got.status >= 400 && got.status < 500:
		return a.refuse(reasonRejected, nil, "the sidecar answered %d%s", got.status, text)
	}
	return a.doubt(nil, "the sidecar answered %d%s", got.status, text)
}

func (c *Client) unauthorized(a *attempt) string {
	if c.o.Token == nil {
		return "it requires a token, but the sidecar provider " + c.o.Name + " has none; configure auth"
	}
	return "it rejects the token of the sidecar provider " + c.o.Name + ": check the token's ServiceAccount and audience, and that the pod's proxy may review tokens" + ownerHint(a)
}

func forbidden(a *attempt) string {
	if a.saw.Owner == (remediations.Object{}) {
		return "the token's ServiceAccount lacks the right that the pod's proxy requires"
	}
	return fmt.Sprintf("the token's ServiceAccount lacks the right that the pod's proxy requires: create seinodetasks.sei.io with the name %s in namespace %s",
		a.saw.Owner.Name, a.saw.Owner.Namespace)
}

// ownerHint ends the message about a refused token with the right on the pod's SeiNode that the
// token's ServiceAccount needs. It is "" if the pod has no SeiNode.
func ownerHint(a *attempt) string {
	if a.saw.Owner == (remediations.Object{}) {
		return ""
	}
	return fmt.Sprintf("; the ServiceAccount also needs the right to create seinodetasks.sei.io with the name %s", a.saw.Owner.Name)
}
