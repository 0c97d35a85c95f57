package redfish

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/stmcginnis/gofish/schemas"

	"drydock.dev/drydock/remediations/providers/kit"
)

type member struct {
	*schemas.ComputerSystem
	place string
}

type root struct {
	ID      string `json:"@odata.id"`
	Systems odata
	Links   struct{ Sessions odata }
}

type odata struct {
	ID string `json:"@odata.id"`
}

// If exactly one System is the machine, errors of other Systems do not matter: boards with GPUs are
// Systems of their own, and may be unhealthy for hours.
func (k *call) system(want wanted) (*member, error) {
	places, err := k.places()
	if err != nil {
		return nil, err
	}
	var all, found []*member
	var failed *kit.Refusal
	why := "lists no systems"
	for _, place := range places {
		m, e := k.member(place)
		if e != nil {
			if failed == nil {
				failed = e
			}
			if !k.wire.goOn() {
				break
			}
			continue
		}
		all = append(all, m)
		if not := want.is(m.ComputerSystem, k.quote); not != "" {
			why = fmt.Sprintf("lists %d systems, but not the node's machine: %s %s", len(places), k.quote(m.ID), not)
			continue
		}
		found = append(found, m)
	}
	k.client.shows(k.bmc, all)
	switch {
	case len(found) == 0 && failed != nil:
		return nil, failed
	case len(found) == 0:
		return nil, &kit.Refusal{Why: kit.Machine, Text: "the BMC " + why + "; check which machine its url reaches"}
	case len(found) > 1:
		return nil, kit.Refuse(kit.Machine, "the BMC lists %d systems that could be the node's machine; configure the machine's serialNumber", len(found))
	}
	return found[0], k.alone(found[0])
}

// The node's machine could be a System of another BMC that lists the same UUID.
func (k *call) alone(m *member) error {
	if why := k.client.unique(k.bmc, m.ComputerSystem); why != "" {
		return &kit.Refusal{Why: kit.Machine, Text: why}
	}
	return nil
}

func (k *call) same(want wanted, kept before) (*member, error) {
	m, e := k.member(kept.System)
	if e != nil {
		return nil, e
	}
	if not := want.is(m.ComputerSystem, k.quote); not != "" {
		return nil, kit.Refuse(kit.While, "the system %s is no longer the node's machine: it %s", k.quote(kept.System), not)
	}
	return m, k.alone(m)
}

func (k *call) places() (all []string, err error) {
	next := k.wire.root().Systems.ID
	if next == "" {
		return nil, nil
	}
	for next != "" {
		var page struct {
			Members []odata
			Next    string `json:"Members@odata.nextLink"`
		}
		if e := k.get(next, &page); e != nil {
			return nil, e
		}
		for _, m := range page.Members {
			all = append(all, m.ID)
		}
		if len(all) > maxRequests {
			return nil, k.explain(answer{sent: "GET " + next, err: errTooMany})
		}
		next = page.Next
	}
	return all, nil
}

func (k *call) get(place string, into any) *kit.Refusal {
	err := k.safely(func() error {
		resp, err := k.api.Get(place) //nolint:bodyclose // the next line closes it
		defer schemas.DeferredCleanupHTTPResponse(resp)
		if err != nil {
			return err
		}
		return json.NewDecoder(resp.Body).Decode(into)
	})
	if err != nil {
		return k.failed(err)
	}
	return nil
}

func (k *call) member(place string) (*member, *kit.Refusal) {
	var s *schemas.ComputerSystem
	if err := k.safely(func() (err error) { s, err = schemas.GetComputerSystem(k.api, place); return err }); err != nil {
		return nil, k.failed(err)
	}
	return &member{s, place}, nil
}

// The BMC names the path of the reset, which must be below the System and on this BMC. Vendors
// write it in different forms: with a slash at the end, with two slashes instead of one, in another
// letter case, or with the BMC's own address.
func (k *call) target(m *member) (string, error) {
	var shown struct {
		Actions struct {
			Reset struct{ Target string } `json:"#ComputerSystem.Reset"`
		}
	}
	if err := json.Unmarshal(m.RawData, &shown); err != nil || shown.Actions.Reset.Target == "" {
		return "", &kit.Refusal{Why: kit.Machine, Text: "the BMC offers no reset of the system"}
	}
	named := shown.Actions.Reset.Target
	to := named
	if strings.HasPrefix(to, "//") {
		to = "/" + strings.TrimLeft(to, "/")
	}
	at, err := url.Parse(to)
	switch {
	case err != nil, at.User != nil, at.Host == "" && !strings.HasPrefix(at.Path, "/"), at.Host != "" && !k.bmc.at(at):
		return "", &kit.Refusal{Why: kit.Machine, Text: "the BMC's target for the reset is on another host, where Drydock sends nothing: " + k.quote(named)}
	}
	system, parts := path.Clean("/"+strings.TrimLeft(m.place, "/")), strings.Split(at.Path, "/")
	if !strings.HasPrefix(strings.ToLower(path.Clean(at.Path)), strings.ToLower(system)+"/actions/") || slices.Contains(parts, "..") || slices.Contains(parts, ".") ||
		at.RawQuery != "" || at.Fragment != "" {
		return "", kit.Refuse(kit.Machine, "the reset's target %s is not below the system %s", k.quote(named), k.quote(m.place))
	}
	out := at.EscapedPath()
	if k.bmc.way(func(w *way) bool { return w.slash }) && !strings.HasSuffix(out, "/") {
		out += "/"
	}
	return out, nil
}

func (b *bmc) at(u *url.URL) bool {
	host := func(h string) string { return strings.TrimSuffix(strings.ToLower(h), ":443") }
	return strings.EqualFold(u.Scheme, "https") && host(u.Host) == host(b.url.Host)
}

// way is the form of a reset request that the BMC's answers have required. It is only in memory;
// without it, the BMC refuses one more request.
type way struct {
	// match requires the header If-Match. slash means that the BMC redirects a path without a slash
	// at the end to the same path with a slash.
	match, slash bool
}

func (b *bmc) way(use func(*way) bool) bool {
	b.learning.Lock()
	defer b.learning.Unlock()
	return use(&b.learned)
}

// learns reports whether the BMC did nothing, and required another form of request, which is kept
// for the next call.
func (k *call) learns(a answer, target string) bool {
	slash := false
	if a.status == http.StatusPermanentRedirect || a.status == http.StatusTemporaryRedirect {
		to, err := url.Parse(a.location)
		slash = err == nil && (to.Host == "" || k.bmc.at(to)) && to.EscapedPath() == target+"/" && to.RawQuery == ""
	}
	return k.bmc.way(func(w *way) bool {
		learned := slash && !w.slash || a.own && a.status == http.StatusPreconditionRequired && !w.match
		w.slash, w.match = w.slash || slash, w.match || a.own && a.status == http.StatusPreconditionRequired
		return learned
	})
}

// before is recorded for the reset: the paths of the System and of the sessions, and the types of a
// hard and a soft reset. With it, only one System must be read before the reset.
type before struct {
	System   string `json:"system"`
	Sessions string `json:"sessions,omitempty"`
	Hard     string `json:"hard"`
	Soft     string `json:"soft,omitempty"`
}
