package alertmanager

import (
	"fmt"

	"drydock.dev/drydock/internal/bounded"
	"drydock.dev/drydock/remediations/alerts"
)

// kept counts bytes of memory.
type kept int

// In bytes, besides the text's characters: as an entry of a list, or as the name or value of a
// label.
const textBytes = 40

// An error means that the total is more than maxKept.
func (k *kept) add(all ...string) error {
	for _, s := range all {
		*k += kept(len(s) + textBytes)
	}
	if *k > maxKept {
		return fmt.Errorf("%w: its alerts of interest take more than %d bytes", bounded.ErrTooLarge, maxKept)
	}
	return nil
}

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
