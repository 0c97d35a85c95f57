// Package settings is the configuration's section providers.sidecars: gated sidecars.
package settings

import (
	_ "embed"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	promconfig "github.com/prometheus/common/config"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8slabels "k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"drydock.dev/drydock/internal/config/section"
	"drydock.dev/drydock/remediations"
)

//go:embed schema.json
var schema string

// Section is the key providers.sidecars of the configuration.
var Section = section.Section{Key: "sidecars", Schema: schema, Steps: map[string]string{"mark-ready": ""}, Read: section.Reading(read)}

// Placeholder in a body stands for the task's ID.
const Placeholder = "{id}"

const (
	OwnerSeiNode   = "seinode"
	ViaHTTP        = "http"
	ViaSeiNodeTask = "seinodetask"
)

// Sidecars is the content of providers.sidecars.
type Sidecars []Sidecar

// Namespaces returns the namespaces of all kinds of sidecars together. Empty means all namespaces.
func (s Sidecars) Namespaces() []string {
	var out []string
	for _, one := range s {
		if len(one.Namespaces) == 0 {
			return nil
		}
		out = append(out, one.Namespaces...)
	}
	return out
}

// Sidecar is one kind of gated sidecars.
type Sidecar struct {
	Name       string
	Selector   k8slabels.Selector
	Namespaces []string
	// Scheme is http or https. Port is the name of a container port, or a number.
	Scheme, Port string

	HealthPath              string
	ReadyCode, NotReadyCode int
	HealthTimeout           time.Duration

	ApproveMethod, ApprovePath, ApproveBody string
	ApproveCodes                            []int
	ApproveTimeout                          time.Duration

	// At most one of TokenFile and TokenFor is set. If both are empty, no token is sent.
	TokenFile string
	TokenFor  *TokenFor
	TLS       promconfig.TLSConfig
	// Owner is OwnerSeiNode or empty. Via is ViaHTTP or ViaSeiNodeTask.
	Owner, Via string
}

// TokenFor is a ServiceAccount and the audiences of its token.
type TokenFor struct {
	ServiceAccount types.NamespacedName
	Audiences      []string
}

type raw struct {
	Name         string
	Selector     *metav1.LabelSelector
	Namespaces   []string
	Scheme, Port string
	Health       struct {
		Path            string
		Ready, NotReady int
		Timeout         string
	}
	Approve struct {
		Method, Path, Body string
		Accepted           []int
		Timeout            string
	}
	Auth struct {
		TokenFile      string
		ServiceAccount *struct {
			Namespace, Name string
			Audiences       []string
		}
	}
	TLS        struct{ CAFile, CertFile, KeyFile, ServerName string }
	Owner, Via string
}

func read(r section.Reader, at section.Pointer, all *[]raw) section.Provider {
	var out Sidecars
	first := map[string]int{}
	for i := range *all {
		at, raw := at.To(i), &(*all)[i]
		if other, twice := first[raw.Name]; twice {
			r.Fault(at.To("name"), "%q is already the name of item [%d]; write another", raw.Name, other)
		}
		first[raw.Name] = i
		out = append(out, one(r, at, raw))
	}
	if out == nil {
		return nil
	}
	return out
}

func one(r section.Reader, at section.Pointer, raw *raw) Sidecar {
	s := Sidecar{
		Name: raw.Name, Namespaces: raw.Namespaces, Scheme: raw.Scheme, Port: raw.Port,
		HealthPath: raw.Health.Path, ReadyCode: raw.Health.Ready, NotReadyCode: raw.Health.NotReady,
		ApproveMethod: raw.Approve.Method, ApprovePath: raw.Approve.Path, ApproveBody: raw.Approve.Body, ApproveCodes: raw.Approve.Accepted,
		Via: raw.Via,
	}
	if raw.Owner != "none" {
		s.Owner = raw.Owner
	}
	if s.Via == ViaSeiNodeTask && s.Owner == "" {
		r.Fault(at.To("via"), "a SeiNodeTask needs a SeiNode; write owner: seinode")
	}
	if s.Selector = r.Selector(at.To("selector"), raw.Selector); s.Selector == nil && !r.Faulty(at.To("selector")) {
		r.Fault(at.To("selector"), "selects every pod; write labels of the pods that have such a sidecar")
		s.Selector = k8slabels.Nothing()
	}
	for i, n := range raw.Namespaces {
		r.Namespace(at.To("namespaces", i), n)
	}
	if n, err := strconv.Atoi(raw.Port); err == nil {
		if n < 1 || n > 65535 {
			r.Fault(at.To("port"), "%q is not a port; write a number from 1 to 65535, or the name of a container's port", raw.Port)
		}
	} else if problems := validation.IsValidPortName(raw.Port); len(problems) > 0 && !r.Faulty(at.To("port")) {
		r.Fault(at.To("port"), "%q is not a port; write a number from 1 to 65535, or the name of a container's port", raw.Port)
	}
	s.HealthTimeout = section.LookTimeout(r, at.To("health", "timeout"), raw.Health.Timeout, time.Nanosecond)
	s.ApproveTimeout, _ = r.Duration(at.To("approve", "timeout"), raw.Approve.Timeout, time.Nanosecond)
	if !json.Valid([]byte(strings.ReplaceAll(raw.Approve.Body, Placeholder, "0"))) && !r.Faulty(at.To("approve", "body")) {
		r.Fault(at.To("approve", "body"), `is not JSON; write for example {"type":"mark-ready","id":"{id}"}`)
	}
	s.auth(r, at.To("auth"), raw)
	s.TLS = promconfig.TLSConfig{ServerName: raw.TLS.ServerName}
	for _, f := range []struct {
		key, name string
		into      *string
	}{{"caFile", raw.TLS.CAFile, &s.TLS.CAFile}, {"certFile", raw.TLS.CertFile, &s.TLS.CertFile}, {"keyFile", raw.TLS.KeyFile, &s.TLS.KeyFile}} {
		if f.name != "" {
			*f.into = r.SecretFile(at.To("tls", f.key), f.name)
		}
	}
	return s
}

func (s *Sidecar) auth(r section.Reader, at section.Pointer, raw *raw) {
	if raw.Auth.TokenFile != "" {
		s.TokenFile = r.SecretFile(at.To("tokenFile"), raw.Auth.TokenFile)
	}
	a := raw.Auth.ServiceAccount
	if a == nil {
		return
	}
	if raw.Auth.TokenFile != "" {
		r.Fault(at.To("serviceAccount"), "must not be set together with tokenFile; remove one of them")
	}
	s.TokenFor = &TokenFor{Audiences: a.Audiences, ServiceAccount: types.NamespacedName{
		Namespace: r.Namespace(at.To("serviceAccount", "namespace"), a.Namespace), Name: r.ObjectName(at.To("serviceAccount", "name"), a.Name),
	}}
}

// Serves implements section.Provider.
func (Sidecars) Serves() remediations.Provider {
	return remediations.Provider{Steps: []string{"mark-ready"}}
}

// Configure implements section.Configurer.
func (all Sidecars) Configure(core *remediations.Config) {
	core.SidecarProviders = map[string]bool{}
	for _, s := range all {
		core.SidecarProviders[s.Name] = true
	}
}

// Warn implements section.Warner.
func (all Sidecars) Warn(at section.Pointer, say func(section.Pointer, string, ...any)) {
	for i, s := range all {
		if s.Scheme == "https" || (s.TokenFor == nil && s.TokenFile == "") {
			continue
		}
		of := "everyone who can read the token can approve sidecars with it"
		if s.TokenFor != nil && len(s.TokenFor.Audiences) == 0 {
			of = "everyone who can read the token can act as that ServiceAccount at the API server for ten minutes: write the audiences that the pods' proxies accept into auth.serviceAccount.audiences"
		}
		say(at.To(i), "the token is sent over unencrypted http, and %s; write scheme: https if the pods serve it", of)
	}
}
