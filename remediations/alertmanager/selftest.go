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

// SelfTest is one alert that Options.SelfTest wants.
type SelfTest struct {
	// Receivers are those that the replica's routes lead it to, sorted, each once.
	Receivers []string
	// SilencedBy, InhibitedBy and MutedBy are as an Alert's.
	SilencedBy, InhibitedBy, MutedBy []string
}

// routedTo says that the alert goes to the receiver, muted or not.
func (s SelfTest) routedTo(receiver string) bool { return slices.Contains(s.Receivers, receiver) }

func newSelfTest(m *gettable[map[string]string]) *SelfTest {
	s := &SelfTest{SilencedBy: m.Status.SilencedBy, InhibitedBy: m.Status.InhibitedBy, MutedBy: m.Status.MutedBy}
	for _, r := range m.Receivers {
		if r != nil && r.Name != nil && len(s.Receivers) < maxReceivers {
			s.Receivers = append(s.Receivers, clip(*r.Name))
		}
	}
	slices.Sort(s.Receivers)
	s.Receivers = slices.Compact(s.Receivers)
	return s
}

// receivers are what a replica's configuration calls its receivers, as far as it matters.
type receivers struct {
	wanted string
	found  bool
	akin   []string
}

// unrouted says that the replica shows the self-test's alert, and routes it elsewhere only.
func (a *answer) unrouted() bool {
	if len(a.selfTests) == 0 || a.interests.receiver == "" {
		return false
	}
	for _, s := range a.selfTests {
		if s.routedTo(a.interests.receiver) {
			return false
		}
	}
	return true
}

// getReceivers asks for all receivers. It is for people to read, and only where the self-test's alert is routed elsewhere.
func (r *replica) getReceivers(ctx context.Context, wanted string) (receivers, error) {
	out := receivers{wanted: wanted}
	list := &stream{of: "receivers", element: out.read}
	_, err := r.api(list).Receiver.GetReceivers(
		receiver.NewGetReceiversParamsWithTimeout(r.timeout).
			WithContext(ctx).
			WithHTTPClient(r.client))
	return out, list.ended(err)
}

// read reads one receiver. One whose name ends in the wanted one is likely to be meant: the operator writes
// namespace/name/ before what an AlertmanagerConfig calls its receiver.
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
	case strings.HasSuffix(*m.Name, "/"+s.wanted) && len(s.akin) < maxReceivers:
		s.akin = append(s.akin, clip(*m.Name))
	}
	return nil
}
