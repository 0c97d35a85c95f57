package alertmanager

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"

	"drydock.dev/drydock/internal/bounded"
	"drydock.dev/drydock/internal/redact"
)

// guard lets pass only what can be Alertmanager's answer, and no more of it than
// limit bytes. It stands outermost, so it judges what the decoder would read.
type guard struct {
	next    http.RoundTripper
	limit   int64
	secrets *redact.Keyring // learns what proves who Drydock is
}

// RoundTrip refuses every status but 200, redirects with them, and every type of
// content but JSON. The body is not quoted: it may be a login page.
func (g guard) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := g.next.RoundTrip(req.WithContext(g.secrets.Trace(req.Context())))
	if err != nil {
		return nil, err
	}
	judge := judgeContent
	if req.Method == http.MethodDelete {
		judge = judgeEmpty
	}
	if err := judge(resp); err != nil {
		_ = resp.Body.Close()
		return nil, err
	}
	resp.Body = bounded.Limits{Bytes: g.limit, Depth: maxDepth}.Body(req.Context(), resp.Body)
	return resp, nil
}

// statusError is an answer with another status than 200.
type statusError struct{ code int }

func (e *statusError) Error() string {
	said := fmt.Sprintf("it answered %d %s", e.code, http.StatusText(e.code))
	if e.code >= 300 && e.code < 400 {
		said += ", and redirects are not followed"
	}
	return said
}

func judgeContent(resp *http.Response) error {
	if resp.StatusCode != http.StatusOK {
		return &statusError{resp.StatusCode}
	}
	content := resp.Header.Get("Content-Type")
	if kind, _, err := mime.ParseMediaType(content); err != nil || kind != "application/json" {
		return fmt.Errorf("it answered 200 OK with content of type %.64q instead of JSON", content)
	}
	return nil
}

// judgeEmpty is for a DELETE: Alertmanager answers it with 200 or 404 and
// nothing else. A page in the answer is a proxy's, which knows of no silence.
func judgeEmpty(resp *http.Response) error {
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusNotFound {
		return &statusError{resp.StatusCode}
	}
	switch n, err := io.ReadFull(resp.Body, make([]byte, 1)); {
	case n > 0:
		return fmt.Errorf("it answered %d %s with content, where Alertmanager sends none", resp.StatusCode, http.StatusText(resp.StatusCode))
	case !errors.Is(err, io.EOF):
		return err
	case resp.StatusCode == http.StatusNotFound:
		return &statusError{resp.StatusCode}
	}
	return nil
}
