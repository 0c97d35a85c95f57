package alertmanager

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"drydock.dev/drydock/internal/bounded"
	"drydock.dev/drydock/internal/replicas"
)

// judge refuses every status but 200, and every content type but JSON, and bounds the body. The
// error does not quote the body, which may be a login page.
func (c *Client) judge(req *http.Request, resp *http.Response) error {
	judge := judgeContent
	if req.Method == http.MethodDelete || req.Method == http.MethodPost && strings.HasSuffix(req.URL.Path, "/alerts") {
		judge = judgeEmpty
	}
	if err := judge(resp); err != nil {
		return err
	}
	resp.Body = bounded.Limits{Bytes: c.answerBytes, Depth: maxDepth}.Body(req.Context(), resp.Body)
	return nil
}

func judgeContent(resp *http.Response) error {
	if resp.StatusCode != http.StatusOK {
		return &replicas.StatusError{Code: resp.StatusCode}
	}
	content := resp.Header.Get("Content-Type")
	if kind, _, err := mime.ParseMediaType(content); err != nil || kind != "application/json" {
		return fmt.Errorf("it answered 200 OK with content of type %.64q instead of JSON", content)
	}
	return nil
}

// Alertmanager answers a DELETE, or a POST of alerts, with a status and no content. An answer with
// content comes from a proxy, which knows nothing about silences and alerts.
func judgeEmpty(resp *http.Response) error {
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusNotFound {
		return &replicas.StatusError{Code: resp.StatusCode}
	}
	switch n, err := io.ReadFull(resp.Body, make([]byte, 1)); {
	case n > 0:
		return fmt.Errorf("it answered %d %s with content, where Alertmanager sends none", resp.StatusCode, http.StatusText(resp.StatusCode))
	case !errors.Is(err, io.EOF):
		return err
	case resp.StatusCode == http.StatusNotFound:
		return &replicas.StatusError{Code: resp.StatusCode}
	}
	return nil
}
