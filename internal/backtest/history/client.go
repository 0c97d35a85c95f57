package history

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/config"
	"github.com/prometheus/common/model"
	"github.com/prometheus/sigv4"
	"go.yaml.in/yaml/v3"

	"drydock.dev/drydock/internal/redact"
)

// Prometheus' http_config, and sigv4 as in its remote_write.
type httpSettings struct {
	HTTP  config.HTTPClientConfig `yaml:",inline"` // not embedded: its UnmarshalYAML would then read the whole file
	SigV4 *sigv4.SigV4Config      `yaml:"sigv4"`
}

// ReadTransport returns a transport with the HTTP settings in a file: TLS, authentication, headers,
// proxies and AWS SigV4.
func ReadTransport(path string) (http.RoundTripper, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading the HTTP settings: %w", err)
	}
	defer file.Close()
	settings := httpSettings{HTTP: config.DefaultHTTPClientConfig}
	decoder := yaml.NewDecoder(file)
	decoder.KnownFields(true)
	if err := decoder.Decode(&settings); err != nil {
		return nil, fmt.Errorf("reading the HTTP settings of %s: %w", path, err)
	}
	settings.HTTP.SetDirectory(filepath.Dir(path))
	if err := settings.HTTP.Validate(); err != nil {
		return nil, fmt.Errorf("reading the HTTP settings of %s: %w", path, err)
	}
	transport, err := config.NewRoundTripperFromConfig(settings.HTTP, "drydock-backtest")
	if err == nil && settings.SigV4 != nil {
		if settings.HTTP.BasicAuth != nil || settings.HTTP.Authorization != nil || settings.HTTP.OAuth2 != nil {
			return nil, fmt.Errorf("the HTTP settings of %s have sigv4 and another authentication: remove one of them", path)
		}
		if err = settings.SigV4.Validate(); err == nil {
			transport, err = sigv4.NewSigV4RoundTripper(settings.SigV4, transport)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("the HTTP settings of %s: %w", path, err)
	}
	return transport, nil
}

// With these parameters Thanos and VictoriaMetrics return an error instead of a part of the data,
// and VictoriaMetrics uses exactly the requested times. Prometheus ignores them.
var wholeAnswers = map[string]string{"partial_response": "false", "deny_partial_response": "1", "nocache": "1"}

// A server's own limit for a query is usually two minutes.
const patience = 5 * time.Minute

type client struct {
	api     v1.API
	shown   string      // the URL without a password
	spoken  atomic.Bool // the server has answered before
	secrets redact.Keyring
}

func newClient(address string, transport http.RoundTripper) (*client, error) {
	parsed, err := url.Parse(address)
	if err != nil || parsed.Host == "" {
		return nil, errors.New("the address of Prometheus is not a URL; write http://HOST:PORT") // the text may contain a password
	}
	c := &client{shown: parsed.Redacted(), secrets: redact.Keyring{Mark: "[secret]"}}
	query := parsed.Query()
	for name, value := range wholeAnswers {
		query.Set(name, value)
	}
	parsed.RawQuery = query.Encode()
	if transport == nil {
		transport = api.DefaultRoundTripper
	}
	asks, err := api.NewClient(api.Config{Address: parsed.String(), RoundTripper: noting{transport}})
	if err != nil {
		return nil, errors.New("the address of Prometheus is not a URL; write http://HOST:PORT")
	}
	c.api = v1.NewAPI(asks)
	return c, nil
}

// The parts of an HTTP answer that Prometheus' client library does not return.
type noted struct {
	status int
	after  string // Retry-After
}

type notedKey struct{}

// It stores them in the noted value of the request's context.
type noting struct{ http.RoundTripper }

func (n noting) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := n.RoundTripper.RoundTrip(r)
	if seen, ok := r.Context().Value(notedKey{}).(*noted); ok && err == nil {
		seen.status, seen.after = answer.StatusCode, answer.Header.Get("Retry-After")
	}
	return answer, err
}

type kind int

const (
	refused kind = iota // give up
	busy                // ask again later
	partial             // ask again later: a part of the store did not answer
	cut                 // ask again, or for less data
	large               // ask for less data
	invalid             // the expression cannot be evaluated on this data
)

type fault struct {
	kind  kind
	after time.Duration
	text  string
}

func (f *fault) Error() string { return f.text }

// The messages of Prometheus, Thanos, Mimir, Cortex and VictoriaMetrics for a query over their
// limits.
var tooLarge = regexp.MustCompile(`(?i)maximum resolution|too many|too large|exceed|limit|larger than|timed? ?out|deadline`)

var tooMany = regexp.MustCompile(`(?i)(too many|number of|limit.*|max.*) ?(time ?)?series`)

// If a query selects too many series, a shorter period does not help, but fewer nodes do.
func (f *fault) ofSeries() bool {
	return tooMany.MatchString(f.text) && !strings.Contains(f.text, "points")
}

var quoted = regexp.MustCompile(`\{\w*=[^}]*\}`)

// The error is a *fault, unless ctx has ended.
func (c *client) ask(ctx context.Context, text string, of v1.Range) (model.Matrix, error) {
	seen := &noted{}
	within, cancel := context.WithTimeout(context.WithValue(c.secrets.Trace(ctx), notedKey{}, seen), patience)
	defer cancel()
	value, warnings, _, err := c.api.QueryRange(within, text, of)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, c.fault(err, seen)
	}
	c.spoken.Store(true)
	for _, remark := range warnings {
		if !strings.HasPrefix(remark, "PromQL ") { // a warning that begins with PromQL is about the expression, not about missing data
			return nil, &fault{kind: partial, text: "the answer is incomplete: " + c.secrets.Text(remark)}
		}
	}
	matrix, is := value.(model.Matrix)
	if !is {
		return nil, &fault{kind: refused, text: fmt.Sprintf("the answer to a range query is a %T and not a matrix", value)}
	}
	return matrix, nil
}

func (c *client) fault(err error, seen *noted) *fault {
	text := err.Error()
	var said *v1.Error
	if errors.As(err, &said) {
		text = strings.TrimSuffix(said.Msg+": "+said.Detail, ": ")
	}
	f := &fault{text: c.secrets.Text(text)}
	if seen.status != 0 && seen.status != http.StatusOK {
		f.text = fmt.Sprintf("the answer is %d %s: %s", seen.status, http.StatusText(seen.status), f.text)
	}
	plain := quoted.ReplaceAllString(text, "")
	switch {
	case seen.status == http.StatusTooManyRequests:
		f.kind, f.after = busy, after(seen.after)
	case seen.status == http.StatusUnauthorized, seen.status == http.StatusForbidden, seen.status == http.StatusNotFound:
	case errors.Is(err, context.DeadlineExceeded), seen.status == http.StatusRequestTimeout, seen.status == http.StatusGatewayTimeout,
		seen.status == http.StatusRequestEntityTooLarge, seen.status != 0 && tooLarge.MatchString(plain):
		f.kind = large
	case seen.status == http.StatusOK && said != nil && said.Type != v1.ErrBadResponse:
		f.kind = invalid
	case seen.status == http.StatusOK && strings.Contains(text, "invalid character '<'"):
		f.text = "the answer is a web page and not that of Prometheus' API"
	case seen.status == http.StatusOK:
		f.kind, f.text = cut, "the answer is cut off or damaged: "+f.text
	case seen.status == http.StatusBadRequest, seen.status == http.StatusUnprocessableEntity:
		f.kind = invalid
	case seen.status == 0 && !c.spoken.Load(): // the address may be wrong
	case seen.status == 0, seen.status >= http.StatusInternalServerError:
		f.kind, f.after = busy, after(seen.after)
	}
	return f
}

// A date in the header Retry-After is ignored, because the server's clock may be wrong.
func after(header string) time.Duration {
	seconds, err := strconv.Atoi(header)
	if err != nil {
		return 0
	}
	return time.Duration(max(0, seconds)) * time.Second
}

func sleep(ctx context.Context, d time.Duration) error {
	wait, over := context.WithTimeout(ctx, cmp.Or(d, time.Millisecond))
	defer over()
	<-wait.Done()
	return ctx.Err()
}
