// Package section defines what a provider adds to the configuration: a section with a schema and
// checks, and what the configured provider serves. internal/config joins the sections into one
// document, and knows the line of each value.
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

// Section is the section of one provider: a key below providers.
type Section struct {
	Key string
	// Schema is the section's JSON Schema. It may refer to the $defs of internal/config/schema.json.
	Schema string
	// Steps are the remediations that the provider may carry out. The value is the key below the
	// section that the remediation requires, for example .units, or "" if the section alone is
	// enough.
	Steps map[string]string
	// Read reads the section and makes the checks that a schema cannot express. The functions Reading
	// and Declared return functions of this type.
	Read func(r Reader, at Pointer, tree json.RawMessage) Provider
}

// Provider is a section that was read from a configuration.
type Provider interface {
	// Serves returns which steps the provider carries out as configured, and which Nodes it serves.
	Serves() remediations.Provider
}

// Warner is a Provider that may have warnings about its section.
type Warner interface {
	// Warn calls the function say for each warning. at is the pointer of the section.
	Warn(at Pointer, say func(p Pointer, format string, args ...any))
}

// Configurer is a Provider that also sets parts of the core's configuration.
type Configurer interface {
	Configure(core *remediations.Config)
}

// Planned is a Provider that may have warnings about the plans that use its steps.
type Planned interface {
	// WarnOfPlans calls the function say for each warning. at is the pointer of the section. planned
	// reports whether any policy that is not off has the step in its plan.
	WarnOfPlans(at Pointer, planned func(step string) bool, say func(p Pointer, format string, args ...any))
}

// Testifier is a Provider that may be able to say if a machine is running. A policy's witness needs
// such a provider for the sign {provider: notRunning}.
type Testifier interface{ Testifies() bool }

// Reader reads values of the configuration. For a wrong value it adds a fault; the caller must not
// use the returned value.
type Reader interface {
	Fault(p Pointer, format string, args ...any)
	// Faulty reports whether the value or one of its parents already has a fault. A call of Fault for
	// such a value adds no further fault.
	Faulty(p Pointer) bool
	Duration(p Pointer, text string, least time.Duration) (time.Duration, bool)
	URL(p Pointer, text string) *url.URL
	URLs(p Pointer, texts []string) []*url.URL
	HTTPConfig(p Pointer, tree map[string]any) promconfig.HTTPClientConfig
	// SecretFile returns the path of the named file, and checks that the file is not empty.
	SecretFile(p Pointer, name string) string
	LabelKey(p Pointer, key string)
	// Namespace and ObjectName read the names of a namespace and of an object.
	Namespace(p Pointer, name string) string
	ObjectName(p Pointer, name string) string
	// NamespacedName reads a text namespace/name. It returns the zero value for an empty text.
	NamespacedName(p Pointer, text string) types.NamespacedName
	// Quantity reads a number or a percentage.
	Quantity(p Pointer, v any) remediations.Quantity
	// Nodes reads the selector of the Nodes that a provider serves. It returns nil without a selector.
	// The provider then serves the Nodes with its prefix in spec.providerID, if it has a prefix.
	Nodes(p Pointer, s *metav1.LabelSelector) k8slabels.Selector
	// Selector reads a selector. It returns nil if the selector selects everything or has a fault.
	Selector(p Pointer, s *metav1.LabelSelector) k8slabels.Selector
}

// SecretKey is the key of one value in a Secret.
type SecretKey struct{ Namespace, Name, Key string }

// Read checks the names and returns the SecretKey, or nil if it is not configured.
func (k *SecretKey) Read(r Reader, at Pointer) *SecretKey {
	if k != nil {
		r.Namespace(at.To("namespace"), k.Namespace)
		r.ObjectName(at.To("name"), k.Name)
	}
	return k
}

// Reading returns a Section.Read that decodes the section into a Raw and passes it to the function
// read. The section has all defaults and has passed the schema, except for values that already have
// a fault.
func Reading[Raw any](read func(r Reader, at Pointer, raw *Raw) Provider) func(Reader, Pointer, json.RawMessage) Provider {
	return func(r Reader, at Pointer, tree json.RawMessage) Provider {
		var raw Raw
		if err := json.Unmarshal(tree, &raw); err != nil { // the schema allows a value that does not fit the Go type
			r.Fault(at, "cannot be decoded: %v", err)
			return nil
		}
		return read(r, at, &raw)
	}
}

// Pointer is the path of a value in a document, like a JSON pointer.
type Pointer []string

// To returns the pointer of a value below this one. parts are field names and indexes.
func (p Pointer) To(parts ...any) Pointer {
	out := make(Pointer, len(p), len(p)+len(parts))
	copy(out, p)
	for _, part := range parts {
		out = append(out, fmt.Sprint(part))
	}
	return out
}

var pointerEscaper = strings.NewReplacer("~", "~0", "/", "~1")

// Key returns the pointer as text, for use as a map's key.
func (p Pointer) Key() string {
	var b strings.Builder
	for _, token := range p {
		b.WriteByte('/')
		_, _ = pointerEscaper.WriteString(&b, token)
	}
	return b.String()
}

// Origin reports whether the URL is only https://host, with or without a port.
func Origin(u *url.URL) bool {
	return u.Scheme == "https" && u.Host != "" && u.User == nil && strings.Trim(u.Path, "/") == "" && u.RawQuery == "" && u.Fragment == ""
}

// Loopback reports whether the host is this machine.
func Loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
