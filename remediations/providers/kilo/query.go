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

// answers bounds the size of an answer of Prometheus. Its series are read one by one, and not kept.
var answers = bounded.Limits{Bytes: maxAnswerBytes, Depth: 16, Each: bounded.Each{Depth: 3, Bytes: 1 << 20, Values: 32_000}}

// maxError bounds the answer to a query that failed.
const maxError = 64 << 10

// query queries one Prometheus, and calls read with each series of its answer. If query returns an
// error, the series before it do not count.
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
		return fmt.Errorf("reading its answer: %w", err)
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

// refusal returns the error for a status other than 200, with Prometheus' own reason if there is
// one.
func refusal(resp *http.Response) error {
	said := fmt.Sprintf("it answered %d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
	var own struct{ Error string }
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxError)).Decode(&own); err == nil && own.Error != "" {
		said += ": " + own.Error
	}
	return errors.New(said)
}

// reply is an answer without its series.
type reply struct {
	status, kind, trouble string
	warnings              []string
	partial               bool
}

// judge returns why the answer does not count.
func (a reply) judge() error {
	switch {
	case a.status != "success":
		return errors.New("its answer is not Prometheus's: it has no status; check that this is a Prometheus")
	case len(a.warnings) > 0: // the missing data might speak against a candidate
		return fmt.Errorf("its answer may not be whole: %s", strings.Join(a.warnings, "; "))
	case a.partial:
		return errors.New("its answer is not whole: it says isPartial")
	case a.kind != "matrix":
		return notAMatrix(a.kind)
	}
	return nil
}

func notAMatrix(kind string) error {
	return fmt.Errorf("its answer is a %q, where a matrix was asked for; check that this is a Prometheus", clip(kind))
}

// read reads the answer to its end.
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
		return errors.New("it continues after its end")
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

// fields reads an object, one field after the other.
func fields(d *json.Decoder, field func(name string) error) error {
	begin, err := d.Token()
	if err != nil || begin == nil { // null: it has none
		return err
	}
	if begin != json.Delim('{') {
		return errors.New("it has something else where an object must be")
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

// list reads a list, one element after the other.
func list(d *json.Decoder, element func() error) error {
	begin, err := d.Token()
	if err != nil || begin == nil { // null: it is empty
		return err
	}
	if begin != json.Delim('[') {
		return errors.New("it has something else where a list must be")
	}
	for d.More() {
		if err := element(); err != nil {
			return err
		}
	}
	_, err = d.Token()
	return err
}
