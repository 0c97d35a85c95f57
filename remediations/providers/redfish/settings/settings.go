// Package settings is the configuration's section providers.redfish.
package settings

import (
	"cmp"
	_ "embed"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8slabels "k8s.io/apimachinery/pkg/labels"

	"drydock.dev/drydock/internal/config/section"
	"drydock.dev/drydock/remediations"
)

//go:embed schema.json
var schema string

// Section is the key providers.redfish of the configuration.
var Section = section.Section{Key: "redfish", Schema: schema, Steps: map[string]string{"reboot": ""}, Read: section.Reading(read)}

// Auth is how to log in to a BMC.
type Auth string

const (
	// Basic sends the user name and password with each request, and needs no session. It is the
	// default.
	Basic Auth = "basic"
	// Session opens a session for each call and closes it. BMCs allow few sessions.
	Session Auth = "session"
)

// BMC configures the management controller of one Node's machine.
type BMC struct {
	// Node is the Node's name. URL has the form https://host, with a port unless it is 443.
	Node, URL string
	// Both files are read again for each call.
	UsernameFile, PasswordFile string
	// Auth is Basic or Session. The default is Basic.
	Auth Auth
	// Exactly one is set: CAFile, a file with the certificates of the authorities that sign the
	// BMC's certificate, or Fingerprint, the SHA-256 of the BMC's certificate in hexadecimal.
	CAFile, Fingerprint string
	// UUID is the machine's. The default is the Node's status.nodeInfo.systemUUID.
	UUID string
	// SerialNumber, if set, must be the System's, whose UUID may then be missing or not unique.
	SerialNumber string
}

// Redfish is the content of providers.redfish.
type Redfish struct {
	BMCs         []BMC
	Timeout      time.Duration
	NodeSelector k8slabels.Selector
}

type raw struct {
	BMCs                               []BMC
	UsernameFile, PasswordFile, CAFile string
	Auth                               Auth
	Timeout                            string

	NodeSelector *metav1.LabelSelector
}

func read(r section.Reader, at section.Pointer, c *raw) section.Provider {
	out := &Redfish{NodeSelector: r.Nodes(at.To("nodeSelector"), c.NodeSelector)}
	out.Timeout, _ = r.Duration(at.To("timeout"), c.Timeout, time.Second)
	// The BMC's own file is preferred to the one for all BMCs.
	file := func(own section.Pointer, name, all, key string) string {
		switch {
		case name != "":
			return r.SecretFile(own.To(key), name)
		case all != "":
			return r.SecretFile(at.To(key), all)
		}
		return ""
	}
	nodes, uuids := map[string]bool{}, map[section.UUID]string{}
	for i, b := range c.BMCs {
		here := at.To("bmcs", i)
		if nodes[b.Node] && !r.Faulty(here.To("node")) {
			r.Fault(here.To("node"), "node %q already has a BMC; remove one of the two", b.Node)
		}
		nodes[b.Node] = true
		one := b
		one.Auth, one.CAFile = cmp.Or(b.Auth, c.Auth), ""
		if u := r.URL(here.To("url"), b.URL); u != nil {
			one.URL = u.String()
			switch {
			case u.Scheme != "https":
				r.Fault(here.To("url"), "must be https, because Drydock sends a password to the BMC")
			case !section.Origin(u):
				r.Fault(here.To("url"), "%q has a path; write only https, the host and its port, for example https://192.0.2.21", b.URL)
			}
		}
		if u, err := section.ParseUUID(b.UUID); err == nil { // the schema already refuses an invalid UUID
			other, taken := uuids[u.Canonical()]
			switch why := u.Shared(); {
			case why != "":
				r.Fault(here.To("uuid"), "%s %s; write the machine's serialNumber instead", b.UUID, why)
			case taken:
				r.Fault(here.To("uuid"), "%s is already the UUID of node %q; correct one of them", b.UUID, other)
			}
			uuids[u.Canonical()] = b.Node
		}
		one.UsernameFile = file(here, b.UsernameFile, c.UsernameFile, "usernameFile")
		one.PasswordFile = file(here, b.PasswordFile, c.PasswordFile, "passwordFile")
		switch {
		case b.Fingerprint != "" && b.CAFile != "":
			r.Fault(here, "has both fingerprint and caFile; remove one of them")
		case b.Fingerprint == "":
			one.CAFile = file(here, b.CAFile, c.CAFile, "caFile")
			if b.CAFile == "" && c.CAFile == "" && !r.Faulty(here.To("fingerprint")) {
				r.Fault(here, "has neither fingerprint nor caFile; write one, because Drydock always checks the certificate")
			}
		}
		for _, key := range []struct{ name, own, all string }{{"usernameFile", b.UsernameFile, c.UsernameFile}, {"passwordFile", b.PasswordFile, c.PasswordFile}} {
			if key.own == "" && key.all == "" {
				r.Fault(here, "has no %s, and redfish has none for all BMCs; write one of them", key.name)
			}
		}
		out.BMCs = append(out.BMCs, one)
	}
	return out
}

// Serves implements section.Provider.
func (c *Redfish) Serves() remediations.Provider {
	names := map[string]bool{}
	for _, b := range c.BMCs {
		names[b.Node] = true
	}
	return remediations.Provider{Steps: []string{"reboot"}, Names: names, NodeSelector: c.NodeSelector}
}

// Testifies implements section.Testifier.
func (c *Redfish) Testifies() bool { return true }
