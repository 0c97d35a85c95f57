package kilo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/prometheus/common/model"

	"drydock.dev/drydock/internal/bounded"
)

// The series are decoded one by one, so they are never in memory together.
var answers = bounded.Limits{Bytes: maxAnswerBytes, Depth: 16, Each: bounded.Each{Depth: 3, Bytes: 1 << 20, Values: 32_000}}

// maxError is in bytes.
const maxError = 64 << 10

// If query returns an error, the series that read has received must not be used.
func query(ctx context.Context, client *http.Client, at *url.URL, text string, read func(*model.SampleStream) error) error {
	resp, err := send(ctx, client, http.MethodPost, at, text)
	if err == nil && (resp.StatusCode == http.StatusMethodNotAllowed || resp.StatusCode == http.StatusNotImplemented) {
		_ = resp.Body.Close()
		resp, err = send(ctx, client, http.MethodGet, at, text)
	}
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return refusal(resp)
	}
	var a reply
	if err := a.read(json.NewDecoder(resp.Body), read); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return fmt.Errorf("reading the answer of Prometheus: %w", err)
	}
	return a.judge()
}

func send(ctx context.Context, client *http.Client, method string, at *url.URL, text string) (*http.Response, error) {
	form, where := url.Values{"query": {text}}.Encode(), *at
	var body io.Reader = http.NoBody
	if method == http.MethodPost {
		body = strings.NewReader(form)
	} else {
		where.RawQuery = form
	}
	req, err := http.NewRequestWithContext(ctx, method, where.String(), body)
	if err != nil {
		return nil, err
	}
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	return client.Do(req)
}

func refusal(resp *http.Response) error {
	said := fmt.Sprintf("the server answered %d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
	var own struct{ Error string }
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxError)).Decode(&own); err == nil && own.Error != "" {
		said += ": " + own.Error
	}
	return errors.New(said)
}

type reply struct {
	status, kind, trouble string
	warnings              []string
	partial               bool
}

func (a reply) judge() error {
	switch {
	case a.status != "success":
		return errors.New("the answer has no status, so it is not from Prometheus; check the URL")
	case len(a.warnings) > 0: // the missing data could rule out a candidate
		return fmt.Errorf("the answer may be incomplete: %s", strings.Join(a.warnings, "; "))
	case a.partial:
		return errors.New("the answer is incomplete: isPartial is true")
	case a.kind != "matrix":
		return notAMatrix(a.kind)
	}
	return nil
}

func notAMatrix(kind string) error {
	return fmt.Errorf("the answer has the result type %q instead of matrix; check that the URL is that of a Prometheus", clip(kind))
}

func (a *reply) read(d *json.Decoder, read func(*model.SampleStream) error) error {
	err := fields(d, func(name string) error {
		switch name {
		case "status":
			return d.Decode(&a.status)
		case "data":
			return a.readData(d, read)
		case "error":
			return d.Decode(&a.trouble)
		case "warnings":
			return list(d, func() error {
				var one string
				err := d.Decode(&one)
				if len(a.warnings) < maxNamed {
					a.warnings = append(a.warnings, clip(one))
				}
				return err
			})
		case "isPartial":
			return d.Decode(&a.partial)
		}
		return d.Decode(new(json.RawMessage))
	})
	switch {
	case err != nil:
		return err
	case a.status == "error":
		return errors.New(a.trouble)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("the answer has data after its end")
	}
	return nil
}

func (a *reply) readData(d *json.Decoder, read func(*model.SampleStream) error) error {
	return fields(d, func(name string) error {
		switch name {
		case "resultType":
			if err := d.Decode(&a.kind); err != nil || a.kind != "matrix" {
				return errors.Join(err, notAMatrix(a.kind))
			}
			return nil
		case "result":
			return readSeries(d, read)
		}
		return d.Decode(new(json.RawMessage))
	})
}

// field must decode the value after the name.
func fields(d *json.Decoder, field func(name string) error) error {
	begin, err := d.Token()
	if err != nil || begin == nil { // null counts as an object without fields
		return err
	}
	if begin != json.Delim('{') {
		return errors.New("the answer has another JSON type where an object must be")
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		if err := field(fmt.Sprint(name)); err != nil {
			return err
		}
	}
	_, err = d.Token()
	return err
}

func readSeries(d *json.Decoder, read func(*model.SampleStream) error) error {
	return list(d, func() error {
		var one *model.SampleStream
		if err := d.Decode(&one); err != nil {
			return err
		}
		return read(one)
	})
}

// element must decode the element.
func list(d *json.Decoder, element func() error) error {
	begin, err := d.Token()
	if err != nil || begin == nil { // null counts as an empty list
		return err
	}
	if begin != json.Delim('[') {
		return errors.New("the answer has another JSON type where a list must be")
	}
	for d.More() {
		if err := element(); err != nil {
			return err
		}
	}
	_, err = d.Token()
	return err
}
