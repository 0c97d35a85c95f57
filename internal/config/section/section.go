// Package section defines a provider's part of the configuration: its schema, its checks, and what
// it declares about the provider. internal/config joins the sections into one document and gives
// each value its line.
package section

import (
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	promconfig "github.com/prometheus/common/config"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8slabels "k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/remediations"
)

// Section is one key below providers.
type Section struct {
	Key string
	// Schema is its JSON Schema. It may refer to the $defs of internal/config/schema.json.
	Schema string
	// Steps are the remediations that the provider may carry out. Each has the key that it requires
	// below the section's own, for example .units; empty: the section's own key.
	Steps map[string]string
	// Read checks what a schema cannot express. Reading makes it.
	Read func(r Reader, at Pointer, tree json.RawMessage) Provider
}

// Provider is a section in a configuration.
type Provider interface {
	// Serves returns which steps the provider carries out as configured, and which Nodes it serves.
	Serves() remediations.Provider
}

// Warner is a usable provider with warnings.
type Warner interface {
	// Warn adds the warnings. at is the section's own pointer.
	Warn(at Pointer, say func(p Pointer, format string, args ...any))
}

// Configurer is a provider that also changes the core's configuration.
type Configurer interface {
	Configure(core *remediations.Config)
}

// Planned is a provider with warnings about the use of its steps in plans.
type Planned interface {
	// WarnOfPlans adds warnings, like Warn. planned reports whether a policy that is not off has
	// the step in its plan.
	WarnOfPlans(at Pointer, planned func(step string) bool, say func(p Pointer, format string, args ...any))
}

// Testifier is a provider that can be asked whether a machine runs, for the sign {provider:
// notRunning}.
type Testifier interface{ Testifies() bool }

// Reader reads values, and adds a fault with its line to each wrong one. The result is then
// unusable.
type Reader interface {
	Fault(p Pointer, format string, args ...any)
	// Faulty reports whether the value, or one of its parents, already has a fault: it gets no
	// second one.
	Faulty(p Pointer) bool
	Duration(p Pointer, text string, least time.Duration) (time.Duration, bool)
	URL(p Pointer, text string) *url.URL
	URLs(p Pointer, texts []string) []*url.URL
	HTTPConfig(p Pointer, tree map[string]any) promconfig.HTTPClientConfig
	// SecretFile resolves a file's name, and checks that the file has content.
	SecretFile(p Pointer, name string) string
	LabelKey(p Pointer, key string)
	// Namespace and ObjectName read the names of a namespace and of an object.
	Namespace(p Pointer, name string) string
	ObjectName(p Pointer, name string) string
	// NamespacedName reads namespace/name. Empty: there is none.
	NamespacedName(p Pointer, text string) types.NamespacedName
	// Quantity reads a number or a percentage.
	Quantity(p Pointer, v any) remediations.Quantity
	// Nodes reads which Nodes a provider serves. Nil: the Nodes' spec.providerID decides.
	Nodes(p Pointer, s *metav1.LabelSelector) k8slabels.Selector
	// Selector reads a selector. Nil: it selects everything, or has a fault.
	Selector(p Pointer, s *metav1.LabelSelector) k8slabels.Selector
}

// SecretKey names one value of a Secret.
type SecretKey struct{ Namespace, Name, Key string }

// Read checks the names, and returns the SecretKey. Nil: not configured.
func (k *SecretKey) Read(r Reader, at Pointer) *SecretKey {
	if k != nil {
		r.Namespace(at.To("namespace"), k.Namespace)
		r.ObjectName(at.To("name"), k.Name)
	}
	return k
}

// Reading is Section.Read for a section of type Raw. The section has passed the schema, except for
// values that already have a fault, and has all defaults.
func Reading[Raw any](read func(r Reader, at Pointer, raw *Raw) Provider) func(Reader, Pointer, json.RawMessage) Provider {
	return func(r Reader, at Pointer, tree json.RawMessage) Provider {
		var raw Raw
		if err := json.Unmarshal(tree, &raw); err != nil { // the schema allows what the type cannot hold
			r.Fault(at, "cannot be decoded: %v", err)
			return nil
		}
		return read(r, at, &raw)
	}
}

// Pointer names a value in a document, like a JSON pointer.
type Pointer []string

// To returns the pointer extended by parts: field names and indexes.
func (p Pointer) To(parts ...any) Pointer {
	out := make(Pointer, len(p), len(p)+len(parts))
	copy(out, p)
	for _, part := range parts {
		out = append(out, fmt.Sprint(part))
	}
	return out
}

var pointerEscaper = strings.NewReplacer("~", "~0", "/", "~1")

// Key returns the pointer as one text.
func (p Pointer) Key() string {
	var b strings.Builder
	for _, token := range p {
		b.WriteByte('/')
		_, _ = pointerEscaper.WriteString(&b, token)
	}
	return b.String()
}

// Origin reports whether the URL is https://host, with or without a port, and nothing else.
func Origin(u *url.URL) bool {
	return u.Scheme == "https" && u.Host != "" && u.User == nil && strings.Trim(u.Path, "/") == "" && u.RawQuery == "" && u.Fragment == ""
}

// Loopback reports whether the host is this machine.
func Loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
