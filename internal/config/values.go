package config

import (
	"errors"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/prometheus/alertmanager/matcher/compat"
	"github.com/prometheus/alertmanager/pkg/labels"
	"github.com/prometheus/common/model"
	"github.com/prometheus/common/promslog"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
)

// Duration reads Prometheus' format: whole numbers with units from y to ms, the largest first.
// least is the shortest allowed duration.
func (b *builder) Duration(p pointer, written string, least time.Duration) (time.Duration, bool) {
	d, err := model.ParseDuration(written)
	switch {
	case err != nil:
		b.Fault(p, "%s is not a duration; write whole numbers with units, the largest first, for example 1h30m", show(written))
	case time.Duration(d) < least && least == time.Nanosecond:
		b.Fault(p, "%s is too short; write more than 0s", written)
	case time.Duration(d) < least:
		b.Fault(p, "%s is too short; write at least %s", written, text.Duration(least))
	}
	return time.Duration(d), !b.Faulty(p)
}

// Quantity relies on the schema, which has checked the format and the range.
func (b *builder) Quantity(p pointer, v any) remediations.Quantity {
	switch v := v.(type) {
	case float64:
		return remediations.Quantity{Value: int(v)}
	case string:
		number, percent := strings.CutSuffix(v, "%")
		n, err := strconv.Atoi(number)
		if err == nil && percent {
			return remediations.Quantity{Value: n, Percent: true}
		}
	}
	b.Fault(p, "%s is neither a number nor a percentage; write for example 10%%", show(v))
	return remediations.Quantity{}
}

// parseMatchers parses as Alertmanager does by default: with its new parser or, if that fails, with
// its old one.
var parseMatchers = compat.FallbackMatchersParser(promslog.NewNopLogger())

func (b *builder) matchers(p pointer, text string) labels.Matchers {
	m, err := parseMatchers(text, "config")
	if err == nil && len(m) == 0 {
		err = errors.New("it contains no matcher")
	}
	if err != nil {
		b.Fault(p, "%s is not a matcher in Alertmanager's syntax (%v); write for example %s", show(text), err, `alertname="NodeNotReady"`)
		return nil
	}
	for _, matcher := range m {
		if strings.Trim(matcher.Value, typographic) != matcher.Value {
			b.Fault(p, "the value of %s is in typographic quotes, which would be part of the value; write straight quotes: \" or '", matcher.Name)
		}
	}
	return m
}

// typographic quotation marks come from word processors and chats.
const typographic = "\u201c\u201d\u201e\u201f\u2018\u2019\u201a\u201b\u00ab\u00bb"

// needsValue refuses matchers that also match an alert without any of their labels. They would
// select nearly all alerts.
func (b *builder) needsValue(p pointer, m labels.Matchers) {
	for _, matcher := range m {
		if !matcher.Matches("") {
			return
		}
	}
	b.Fault(p, "also matches alerts without any of its labels; add a matcher that requires a value, for example %s", `remediation="node-not-ready"`)
}

// ours limits matchers to this cluster's alerts, unless they already name the cluster's label.
// Several clusters may share an Alertmanager. Another cluster's Watchdog proves nothing about this
// cluster's Prometheus. Another cluster's missing data must not hold the repairs of this one.
func (b *builder) ours(m labels.Matchers) labels.Matchers {
	label := b.core.ClusterLabel
	if len(m) == 0 || label == "" || slices.ContainsFunc(m, func(m *labels.Matcher) bool { return m.Name == label }) {
		return m
	}
	return append(m, &labels.Matcher{Type: labels.MatchEqual, Name: label, Value: b.core.ClusterValue})
}

// URL refuses credentials, because URLs are logged and are labels of metrics.
func (b *builder) URL(p pointer, text string) *url.URL {
	u, err := url.Parse(text)
	switch {
	case strings.Contains(text, "@"):
		b.Fault(p, "has credentials in the URL; remove them, and write them to a file that the configuration names")
		return nil
	case err != nil || u.Host == "" || u.Opaque != "":
		b.Fault(p, "%s is not a URL; write for example http://alertmanager:9093", showURL(text))
		return nil
	case u.Scheme != "http" && u.Scheme != "https":
		b.Fault(p, "%s is neither http nor https; write one of them", showURL(text))
	case u.RawQuery != "" || u.Fragment != "" || u.ForceQuery:
		b.Fault(p, "%s has a query or a fragment; write only scheme, host and path", showURL(text))
	case u.Hostname() == "" || !validPort(u.Port()):
		b.Fault(p, "%s has no host or an invalid port; write for example http://alertmanager:9093", showURL(text))
	}
	u.Path, u.RawPath = strings.TrimRight(u.Path, "/"), ""
	u.Host, u.Scheme = strings.ToLower(u.Host), strings.ToLower(u.Scheme)
	return u
}

// showURL cuts the URL after the host, because the path and the query may contain a secret.
func showURL(text string) string {
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok {
		scheme, rest = "", text
	}
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		rest = rest[:i] + "/..."
	}
	if ok {
		rest = scheme + "://" + rest
	}
	return show(rest)
}

func (b *builder) URLs(at pointer, texts []string) []*url.URL {
	var out []*url.URL
	seen := map[string]int{}
	for i, text := range texts {
		p := at.To(i)
		u := b.URL(p, text)
		if u == nil {
			continue
		}
		// A host name must be ASCII. For other names, net/http would dial the Punycode form, but
		// Drydock's clients would look up the name as it is written.
		if strings.ContainsFunc(u.Host, func(r rune) bool { return r > unicode.MaxASCII }) {
			b.Fault(p, "the host of %s is not ASCII; write it in Punycode, which begins with xn--", showURL(text))
		}
		as := *u
		if as.Port() == "" { // clients add the scheme's port, so that both spellings are the same address
			as.Host = net.JoinHostPort(u.Hostname(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
		}
		if first, twice := seen[as.String()]; twice {
			b.Fault(p, "is the same as item [%d]; remove one of them", first)
		}
		seen[as.String()] = i
		out = append(out, u)
	}
	return out
}

func validPort(port string) bool {
	if port == "" {
		return true
	}
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && n > 0
}
