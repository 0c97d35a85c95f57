// Package section is what a provider's part of the configuration is made of: its schema, its checks, and what it says about the
// provider. internal/config joins the sections into one document and gives each value its line.
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
	// Schema is its JSON Schema, which may refer to the $defs of internal/config/schema.json.
	Schema string
	// Steps are the remediations that the provider may carry out. Each has the key without which it does not, below the section's
	// own, such as .units; empty: the section's own.
	Steps map[string]string
	// Read checks what a schema cannot say: Reading makes it.
	Read func(r Reader, at Pointer, tree json.RawMessage) Provider
}

// Provider is a section that a configuration has.
type Provider interface {
	// Serves says which steps it carries out as it is configured, and on which Nodes.
	Serves() remediations.Provider
}

// Warner is a provider of which a person should know something, though it can be used.
type Warner interface {
	// Warn says it. at is the section's own place.
	Warn(at Pointer, say func(p Pointer, format string, args ...any))
}

// Configurer is a provider that has something to say to the core besides.
type Configurer interface {
	Configure(core *remediations.Config)
}

// Planned is a provider that has something to say about what the plans have of its steps.
type Planned interface {
	// WarnOfPlans says what a person should know, as Warn does. planned: a policy that is not off has the step in its plan.
	WarnOfPlans(at Pointer, planned func(step string) bool, say func(p Pointer, format string, args ...any))
}

// Testifier is a provider that is asked whether a machine runs, for the sign {provider: notRunning}.
type Testifier interface{ Testifies() bool }

// Reader reads values, and adds a fault with its line to each that is wrong. What it returns then is of no use.
type Reader interface {
	Fault(p Pointer, format string, args ...any)
	// Faulty says whether the value, or one that it is part of, has a fault already: of those no second one is told.
	Faulty(p Pointer) bool
	Duration(p Pointer, text string, least time.Duration) (time.Duration, bool)
	URL(p Pointer, text string) *url.URL
	URLs(p Pointer, texts []string) []*url.URL
	HTTPConfig(p Pointer, tree map[string]any) promconfig.HTTPClientConfig
	// SecretFile resolves a file's name, and looks whether something is in it.
	SecretFile(p Pointer, name string) string
	LabelKey(p Pointer, key string)
	// Namespace and ObjectName read the name of a namespace, and of an object.
	Namespace(p Pointer, name string) string
	ObjectName(p Pointer, name string) string
	// NamespacedName reads namespace/name; empty: there is none.
	NamespacedName(p Pointer, text string) types.NamespacedName
	// Quantity reads a number or a percentage.
	Quantity(p Pointer, v any) remediations.Quantity
	// Nodes reads which Nodes a provider serves; nil: the configuration leaves that to their spec.providerID.
	Nodes(p Pointer, s *metav1.LabelSelector) k8slabels.Selector
	// Selector reads one that selects something; nil: it would select everything, or has its fault.
	Selector(p Pointer, s *metav1.LabelSelector) k8slabels.Selector
}

// SecretKey names one value of a Secret.
type SecretKey struct{ Namespace, Name, Key string }

// Read checks the names, and returns the SecretKey; nil: none is meant.
func (k *SecretKey) Read(r Reader, at Pointer) *SecretKey {
	if k != nil {
		r.Namespace(at.To("namespace"), k.Namespace)
		r.ObjectName(at.To("name"), k.Name)
	}
	return k
}

// Reading is Section.Read of a section that is written as Raw says. It has passed the schema, but for what has its fault already,
// and has all defaults.
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

// To returns the pointer to what parts, field names and indexes, lead to from here.
func (p Pointer) To(parts ...any) Pointer {
	out := make(Pointer, len(p), len(p)+len(parts))
	copy(out, p)
	for _, part := range parts {
		out = append(out, fmt.Sprint(part))
	}
	return out
}

var pointerEscaper = strings.NewReplacer("~", "~0", "/", "~1")

// Key is the pointer as one text.
func (p Pointer) Key() string {
	var b strings.Builder
	for _, token := range p {
		b.WriteByte('/')
		_, _ = pointerEscaper.WriteString(&b, token)
	}
	return b.String()
}

// Origin says that the URL is https://host, with a port or without, and nothing else.
func Origin(u *url.URL) bool {
	return u.Scheme == "https" && u.Host != "" && u.User == nil && strings.Trim(u.Path, "/") == "" && u.RawQuery == "" && u.Fragment == ""
}

// Loopback says that the host is this machine.
func Loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
