package config

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	promconfig "github.com/prometheus/common/config"
	k8slabels "k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
)

// idPlaceholder stands for the task's id in a body.
const idPlaceholder = "{id}"

func (b *builder) buildSidecars(raw []rawSidecar) {
	first := map[string]int{}
	for i := range raw {
		at, r := pointer{"providers", "sidecars"}.To(i), &raw[i]
		if other, twice := first[r.Name]; twice {
			b.Fault(at.To("name"), "%q is already the name of item [%d]; write another", r.Name, other)
		}
		first[r.Name] = i
		b.config.Sidecars = append(b.config.Sidecars, b.sidecar(at, r))
	}
}

func (b *builder) sidecar(at pointer, r *rawSidecar) Sidecar {
	s := Sidecar{
		Name: r.Name, Namespaces: r.Namespaces, Scheme: r.Scheme, Port: r.Port,
		HealthPath: r.Health.Path, ReadyCode: r.Health.Ready, NotReadyCode: r.Health.NotReady,
		ApproveMethod: r.Approve.Method, ApprovePath: r.Approve.Path, ApproveBody: r.Approve.Body, ApproveCodes: r.Approve.Accepted,
		Via: r.Via,
	}
	if r.Owner != "none" {
		s.Owner = r.Owner
	}
	if s.Via == "seinodetask" && s.Owner == "" {
		b.Fault(at.To("via"), "a SeiNodeTask needs the SeiNode that it is for; write owner: seinode")
	}
	if s.Selector = b.nodeSelector(at.To("selector"), r.Selector); s.Selector == nil && !b.Faulty(at.To("selector")) {
		b.Fault(at.To("selector"), "selects every pod; write which pods have such a sidecar")
		s.Selector = k8slabels.Nothing()
	}
	for i, n := range r.Namespaces {
		b.namespace(at.To("namespaces", i), n)
	}
	if n, err := strconv.Atoi(r.Port); err == nil {
		if n < 1 || n > 65535 {
			b.Fault(at.To("port"), "%q is no port; write a number from 1 to 65535, or the name of a container's port", r.Port)
		}
	} else if problems := validation.IsValidPortName(r.Port); len(problems) > 0 && !b.Faulty(at.To("port")) {
		b.Fault(at.To("port"), "%q is no port; write a number from 1 to 65535, or the name of a container's port", r.Port)
	}
	s.HealthTimeout, _ = b.Duration(at.To("health", "timeout"), r.Health.Timeout, time.Nanosecond)
	s.ApproveTimeout, _ = b.Duration(at.To("approve", "timeout"), r.Approve.Timeout, time.Nanosecond)
	if !json.Valid([]byte(strings.ReplaceAll(r.Approve.Body, idPlaceholder, "0"))) && !b.Faulty(at.To("approve", "body")) {
		b.Fault(at.To("approve", "body"), `is not JSON; write for example {"type":"mark-ready","id":"{id}"}`)
	}
	b.sidecarAuth(at.To("auth"), r, &s)
	s.TLS = promconfig.TLSConfig{ServerName: r.TLS.ServerName}
	for _, f := range []struct {
		key, name string
		into      *string
	}{{"caFile", r.TLS.CAFile, &s.TLS.CAFile}, {"certFile", r.TLS.CertFile, &s.TLS.CertFile}, {"keyFile", r.TLS.KeyFile, &s.TLS.KeyFile}} {
		if f.name != "" {
			*f.into = b.SecretFile(at.To("tls", f.key), f.name)
		}
	}
	return s
}

func (b *builder) sidecarAuth(at pointer, r *rawSidecar, s *Sidecar) {
	if r.Auth.TokenFile != "" {
		s.TokenFile = b.SecretFile(at.To("tokenFile"), r.Auth.TokenFile)
	}
	a := r.Auth.ServiceAccount
	if a == nil {
		return
	}
	if r.Auth.TokenFile != "" {
		b.Fault(at.To("serviceAccount"), "tokenFile is set, too; remove one of them")
	}
	s.TokenFor = &TokenFor{
		ServiceAccount: ObjectName{b.namespace(at.To("serviceAccount", "namespace"), a.Namespace), b.objectName(at.To("serviceAccount", "name"), a.Name)},
		Audiences:      a.Audiences,
	}
}
