package alertmanager

import (
	"fmt"

	"drydock.dev/drydock/internal/bounded"
	"drydock.dev/drydock/remediations/alerts"
)

// kept counts the memory for what is kept of an answer, in bytes.
type kept int

// textBytes is the memory for one text besides its characters, as an entry of a list or as a half
// of a label.
const textBytes = 40

// add counts texts.
func (k *kept) add(all ...string) error {
	for _, s := range all {
		*k += kept(len(s) + textBytes)
	}
	if *k > maxKept {
		return fmt.Errorf("%w: its alerts of interest take more than %d bytes", bounded.ErrTooLarge, maxKept)
	}
	return nil
}

// alert counts an alert.
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
