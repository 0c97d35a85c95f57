package providertest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/signs"
)

// stranger is a provider as an outside author may write it, for a small API: GET
// /machines?name=NAME lists machines, and POST /machines/ID/reset resets one. It has each flaw in
// flaws.
type stranger struct {
	url, token string
	timeout    time.Duration
	flaws      map[string]bool
	surveyed   map[string]bool // nodes
}

type machine struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	Power string `json:"power"`
}

// refusal is an error which shows that nothing was changed. again is the wait before the next try.
type refusal struct {
	error
	account, passing bool
	again            time.Duration
}

func (r refusal) Is(target error) bool {
	return r.account && target == engine.ErrAccount || r.passing && target == engine.ErrPassing
}
func (r refusal) Unwrap() error { return r.error }

func (s stranger) Act(ctx context.Context, m engine.Machine, mayStill func() error) (remediations.CallOutcome, error) {
	outcome, err := s.act(ctx, m, mayStill)
	if err != nil {
		err = fmt.Errorf("resetting node %s: %w", m.Node, err)
	}
	if s.flaws["leaves a goroutine"] {
		go func() { select {} }()
	}
	return outcome, err
}

func (s stranger) act(ctx context.Context, m engine.Machine, mayStill func() error) (remediations.CallOutcome, error) {
	if s.flaws["asks mayStill first"] {
		if err := mayStill(); err != nil {
			return remediations.CallRefused, err
		}
	}
	if s.flaws["reads all again after the intent"] {
		for range 3 {
			_, _ = s.find(ctx, m)
		}
	}
	found, err := s.find(ctx, m)
	if err == nil && found.Power == "off" {
		err = refusal{error: errors.New("it is off, and only what runs is reset")}
	}
	if err != nil {
		if refused := (refusal{}); !errors.As(err, &refused) && !s.flaws["does not say what passes"] {
			err = refusal{error: err, passing: true}
		}
		if s.flaws["asks mayStill before it gives up"] {
			_ = mayStill()
		}
		return remediations.CallRefused, err
	}
	if !s.flaws["never asks mayStill"] && !s.flaws["asks mayStill first"] && (!s.flaws["asks mayStill where it was asked before"] || s.surveyed[m.Node]) {
		if err := mayStill(); err != nil {
			return remediations.CallRefused, err
		}
	}
	if ctx.Err() != nil && !s.flaws["looks at its context no more"] {
		return remediations.CallRefused, ctx.Err()
	}
	reset := "/machines/" + found.ID + "/reset"
	if !s.flaws["does not name the attempt"] {
		reset += "?attempt=" + m.Attempt
	}
	_, err = s.send(context.WithoutCancel(ctx), ctx, http.MethodPost, reset)
	if err != nil && s.flaws["tries the change again"] {
		_, err = s.send(ctx, ctx, http.MethodPost, reset)
	}
	var refused refusal
	switch {
	case err == nil:
		return remediations.CallAccepted, nil
	case errors.As(err, &refused), s.flaws["takes every error for a refusal"]:
		return remediations.CallRefused, err
	}
	return remediations.CallUnknown, err
}

func (s stranger) Survey(ctx context.Context, m engine.Machine) remediations.Survey {
	s.surveyed[m.Node] = true
	found, err := s.find(ctx, m)
	if s.flaws["a survey that changes something"] {
		_, _ = s.send(ctx, ctx, http.MethodPost, "/machines/"+found.ID+"/reset")
	}
	if err == nil && found.Power == "off" && !s.flaws["does not say before what it refuses"] {
		err = errors.New("it is off, and only what runs is reset")
	}
	if err == nil || s.flaws["a survey that says nothing"] {
		return remediations.Survey{}
	}
	var refused refusal
	errors.As(err, &refused)
	return remediations.Survey{Trouble: "node " + m.Node + ": " + err.Error(), Again: max(remediations.AskPassing, refused.again)}
}

func (s stranger) Testify(ctx context.Context, m engine.Machine, _ signs.Sign) signs.Testimony {
	found, err := s.find(ctx, m)
	switch {
	case err != nil && s.flaws["no answer means that it is off"]:
		return signs.Testimony{Answer: signs.Ill, Saw: "nothing"}
	case err != nil:
		return signs.Testimony{Answer: signs.Unknown, Saw: err.Error()}
	case found.Power == "off":
		return signs.Testimony{Answer: signs.Ill, Saw: "it is off"}
	}
	return signs.Testimony{Answer: signs.Well, Saw: "it is on"}
}

// find looks the machine up. It sends two requests.
func (s stranger) find(ctx context.Context, m engine.Machine) (machine, error) {
	answer, err := s.send(ctx, ctx, http.MethodGet, "/machines?name="+m.Node)
	var refused refusal
	if err != nil && (!errors.As(err, &refused) || s.flaws["asks again when refused"]) {
		answer, err = s.send(ctx, ctx, http.MethodGet, "/machines?name="+m.Node)
	}
	if err != nil {
		return machine{}, err
	}
	var all []machine
	if err := json.Unmarshal(answer, &all); err != nil {
		return machine{}, s.clean(err)
	}
	id := strings.TrimPrefix(m.ProviderID, "strange://")
	switch {
	case len(all) == 0:
		return machine{}, errors.New("it is not there")
	case len(all) > 1 && !s.flaws["takes the first of two"]:
		return machine{}, errors.New("there are two of that name")
	case all[0].ID != id && !s.flaws["does not compare the ID"]:
		return machine{}, errors.New("the machine of that name has another ID")
	}
	return all[0], nil
}

// send sends one request. A request that has left is completed, but its caller waits only until
// gaveUp ends.
func (s stranger) send(ctx, gaveUp context.Context, method, path string) ([]byte, error) {
	wait := s.timeout
	if s.flaws["has no time limit"] {
		wait += 8 * time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	if s.flaws["does not end with its context"] {
		time.AfterFunc(7*time.Second, cancel)
	} else {
		defer context.AfterFunc(gaveUp, cancel)()
	}
	req, err := http.NewRequestWithContext(ctx, method, s.url+path, nil)
	if err != nil {
		return nil, refusal{error: err}
	}
	req.Header.Set("Authorization", "Bearer "+s.token)
	c := &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true, MaxResponseHeaderBytes: 64 << 10},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	if s.flaws["follows redirects"] {
		c.CheckRedirect = nil
	}
	if s.surveyed["barred"] {
		return nil, refusal{error: errors.New("the token was refused"), account: true}
	}
	answer, err := c.Do(req)
	if err != nil {
		if strings.Contains(err.Error(), "connection refused") {
			return nil, refusal{error: s.clean(err), passing: !s.flaws["does not say what passes"]}
		}
		return nil, s.clean(err)
	}
	defer answer.Body.Close()
	most := int64(1 << 20)
	if s.flaws["reads without a bound"] {
		most = 1 << 40
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, most))
	if err != nil {
		return nil, s.clean(err)
	}
	return body, s.judge(answer, body)
}

func (s stranger) judge(answer *http.Response, body []byte) error {
	said := fmt.Errorf("HTTP %d: %w", answer.StatusCode, s.clean(errors.New(string(body))))
	after, _ := strconv.Atoi(answer.Header.Get("Retry-After"))
	again := time.Duration(after) * time.Second
	if s.flaws["does not wait when it is told to"] {
		again = 0
	}
	switch status := answer.StatusCode; {
	case bytes.HasPrefix(body, []byte("<")) && !s.flaws["believes a page"]:
		return said
	case (status == 401 || status == 403) && !s.flaws["does not know what concerns its account"]:
		s.surveyed["barred"] = s.flaws["bars all machines after one refusal"]
		return refusal{error: said, account: true}
	case status/100 == 4, again > 0 && answer.Request.Method == http.MethodGet:
		return refusal{error: said, again: again}
	case status/100 != 2, !json.Valid(body) && !s.flaws["believes half a document"]:
		return said
	}
	return nil
}

// clean returns the error as one line without the token.
func (s stranger) clean(err error) error {
	said := err.Error()
	if !s.flaws["shows its token"] {
		said = strings.ReplaceAll(said, s.token, "[token]")
	}
	if s.flaws["quotes without a bound"] {
		return errors.New(said)
	}
	return errors.New(text.Line(said, 200))
}
