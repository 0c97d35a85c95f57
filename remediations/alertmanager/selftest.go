package alertmanager

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/prometheus/alertmanager/api/v2/client/receiver"
	"github.com/prometheus/alertmanager/api/v2/models"
)

// The lists of receivers in one answer. Thousands of alerts share the same few lists.
type routes map[string][]string

func (r routes) of(all []*models.ReceiverReference) []string {
	var names []string
	for _, receiver := range all {
		if receiver != nil && receiver.Name != nil && len(names) < maxReceivers {
			name := *receiver.Name
			if len(name) > maxWords {
				name = clip(name) + "…" // so that a cut name never equals a configured one
			}
			names = append(names, name)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	key := strings.Join(names, "\x00")
	if known, ok := r[key]; ok {
		return known
	}
	if len(r) < maxRoutes {
		r[key] = names
	}
	return names
}

// receivers has the receivers with names like the wanted one, for the self-test's message to
// people.
type receivers struct {
	wanted  string
	found   bool
	similar []string
}

// The replica has the self-test's alert and routes it only to other receivers.
func (a *answer) unrouted() bool {
	if len(a.selfTests) == 0 || a.interests.receiver == "" {
		return false
	}
	for _, s := range a.selfTests {
		if slices.Contains(s.Receivers, a.interests.receiver) {
			return false
		}
	}
	return true
}

// Only the self-test's message to people needs the receivers, and only if the self-test's alert is
// routed to other ones.
func (r *replica) getReceivers(ctx context.Context, wanted string) (receivers, error) {
	out := receivers{wanted: wanted}
	list := &stream{of: "receivers", element: out.read}
	_, err := r.api(list).Receiver.GetReceivers(
		receiver.NewGetReceiversParamsWithTimeout(r.timeout).
			WithContext(ctx).
			WithHTTPClient(r.client))
	return out, list.ended(err)
}

// If the name ends in the wanted name, the user probably meant this receiver: the Prometheus
// operator puts namespace/name/ before the name of a receiver in an AlertmanagerConfig.
func (s *receivers) read(d *json.Decoder) error {
	var m *models.Receiver
	if err := d.Decode(&m); err != nil {
		return err
	}
	if m == nil || m.Name == nil {
		return errors.New("it has a receiver without a name, so it is not Alertmanager's")
	}
	switch {
	case *m.Name == s.wanted:
		s.found = true
	case strings.HasSuffix(*m.Name, "/"+s.wanted) && len(s.similar) < maxReceivers:
		s.similar = append(s.similar, clip(*m.Name))
	}
	return nil
}
