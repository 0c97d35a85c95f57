package alertmanager

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"

	"github.com/prometheus/alertmanager/api/v2/client/alertgroup"
	"github.com/prometheus/alertmanager/api/v2/models"
)

// mutes collects the time intervals that mute each alert of interest. They belong to a route, so
// only groups show them. An alert counts as muted if at least one of its groups is muted.
type mutes struct {
	interests interests
	by        map[string][]string // by fingerprint: the names of the time intervals, sorted and without duplicates
	kept      kept
}

func newMutes(in interests) *mutes { return &mutes{interests: in, by: map[string][]string{}} }

// getGroups requests the groups that Alertmanager sends to Drydock's receiver. The server uses the
// parameters as follows (according to the source of 0.31.1 and 0.34.2):
//
//   - receiver is a regular expression that the server anchors itself, as ^(?:…)$. It is also
//     anchored and quoted here, which changes nothing. The parameter only saves work: the method
//     read checks the receiver's name in each group.
//   - muted=false leaves out every group that time intervals mute, and nothing else. The API's
//     description also mentions silences and inhibitions, which is wrong. muted=true is the
//     default. Then a muted group comes with all of its alerts. Each of them has the names of the
//     intervals in status.mutedBy, and the state suppressed.
//   - active=false leaves out alerts that neither a silence nor an inhibition covers, muted or not.
//
// Alertmanager records a mute time on the group when the group's notification is due. The first
// notification is due after group_wait, the next ones at each group_interval. No notification is
// due while every alert of the group is inhibited. A restarted Alertmanager knows no mute times
// before the first notification.
func (r *replica) getGroups(ctx context.Context, m *mutes) error {
	list := &stream{of: "groups", element: m.read, depth: 3}
	yes, receiver := true, "^(?:"+regexp.QuoteMeta(m.interests.receiver)+")$"
	_, err := r.api(list).Alertgroup.GetAlertGroups(
		alertgroup.NewGetAlertGroupsParamsWithTimeout(r.timeout).
			WithContext(ctx).
			WithHTTPClient(r.client).
			WithReceiver(&receiver).
			WithActive(&yes).WithSilenced(&yes).WithInhibited(&yes).WithMuted(&yes))
	return list.ended(err)
}

// One alert is decoded at a time, because one group may have all alerts. Alertmanager writes the
// receiver after the alerts.
func (m *mutes) read(d *json.Decoder) error {
	begin, err := d.Token()
	if err != nil {
		return err
	}
	if begin != json.Delim('{') {
		return errors.New("its elements are not groups")
	}
	var receiver *models.ReceiverReference
	var muted map[string][]string // nil until the alerts were read
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		switch key {
		case "alerts":
			muted, err = m.readAlerts(d)
		case "receiver":
			err = d.Decode(&receiver)
		default:
			var skipped json.RawMessage
			err = d.Decode(&skipped)
		}
		if err != nil {
			return err
		}
	}
	if _, err := d.Token(); err != nil {
		return err
	}
	if receiver == nil || receiver.Name == nil || muted == nil {
		return errors.New("it has a group without alerts or receiver, so it is not Alertmanager's")
	}
	if *receiver.Name != m.interests.receiver {
		return nil
	}
	return m.add(muted)
}

// readAlerts returns the time intervals of each muted alert of interest, by fingerprint.
func (m *mutes) readAlerts(d *json.Decoder) (map[string][]string, error) {
	begin, err := d.Token()
	if err != nil {
		return nil, err
	}
	if begin != json.Delim('[') {
		return nil, errors.New("it has a group whose alerts are not a list")
	}
	muted := map[string][]string{}
	for d.More() {
		var alert *gettable[json.RawMessage] // most alerts are not muted, so their labels need not be decoded
		if err := d.Decode(&alert); err != nil {
			return nil, err
		}
		if err := genuine(alert); err != nil {
			return nil, err
		}
		if alert.Labels[0] != '{' || !bytes.ContainsRune(alert.Labels, ':') {
			return nil, errNotGenuine // the labels are not an object, or are empty
		}
		if len(alert.Status.MutedBy) == 0 {
			continue
		}
		var labels map[string]string
		if err := json.Unmarshal(alert.Labels, &labels); err != nil {
			return nil, err
		}
		if !m.interests.keeps(labels) && !m.interests.isSelfTest(labels) {
			continue
		}
		if len(muted) == maxAlerts {
			return nil, fmt.Errorf("it has a group with more than %d alerts of interest", maxAlerts)
		}
		if err := m.kept.add(alert.Status.MutedBy...); err != nil {
			return nil, err
		}
		muted[labelSet(labels).Fingerprint().String()] = alert.Status.MutedBy
	}
	_, err = d.Token()
	return muted, err
}

func (m *mutes) add(muted map[string][]string) error {
	for key, by := range muted {
		all := slices.Concat(m.by[key], by)
		slices.Sort(all)
		m.by[key] = slices.Compact(all)
	}
	if len(m.by) > maxAlerts {
		return fmt.Errorf("it has more than %d alerts of interest", maxAlerts)
	}
	return nil
}
