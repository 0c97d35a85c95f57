package alertmanager

import (
	"fmt"

	"drydock.dev/drydock/internal/bounded"
	"drydock.dev/drydock/remediations/alerts"
)

// kept counts the memory, in bytes, of the alerts that are stored from an answer.
type kept int

// textBytes is the memory of one text besides its characters: as an entry of a list, or as the name
// or value of a label.
const textBytes = 40

// add counts the memory of texts. It returns an error if the total is more than maxKept.
func (k *kept) add(all ...string) error {
	for _, s := range all {
		*k += kept(len(s) + textBytes)
	}
	if *k > maxKept {
		return fmt.Errorf("%w: its alerts of interest take more than %d bytes", bounded.ErrTooLarge, maxKept)
	}
	return nil
}

// alert counts the memory of an alert.
func (k *kept) alert(a *alerts.Alert) error {
	for name, value := range a.Labels {
		if err := k.add(name, value); err != nil {
			return err
		}
	}
	for _, list := range [][]string{a.SilencedBy, a.InhibitedBy, a.MutedBy, a.Receivers} {
		if err := k.add(list...); err != nil {
			return err
		}
	}
	return nil
}
