package engine

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
)

const (
	noScaleDown = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
	noDisrupt   = "karpenter.sh/do-not-disrupt"
	noRepair    = "karpenter.sh/do-not-repair"
)

// announcements are all announcements of the model.
var announcements = []string{noScaleDown, noDisrupt, noRepair}

// announced adds all announcements to a configuration.
func announced(c *remediations.Config) { c.Announce = announcements }

// announces returns the whole configuration with all announcements.
func announces() *remediations.Config {
	c := wholeConfig()
	announced(c)
	return c
}

func (i *instance) OwnsAnnotations(_ context.Context, node string, keys []string) (owned []string, err error) {
	i.enter("ownsAnnotations", false)
	i.w.mu.Lock()
	defer i.w.mu.Unlock()
	m := i.w.machines[node]
	if m == nil {
		return nil, ErrNotFound
	}
	for _, key := range keys {
		if m.announcedBy[key] == "drydock" || i.w.lies.ownsEveryAnnouncement {
			owned = append(owned, key)
		}
	}
	return owned, nil
}

// checkAnnouncements checks invariants 1, 8 and 9 for announcements. Drydock removes an
// announcement at the end of the repair, and only if the record shows that it is Drydock's own.
// after are the annotations after the write.
func (w *world) checkAnnouncements(i *instance, cur *corev1.Node, c NodeChange) {
	m := w.machines[cur.Name]
	was := remediations.ReadJournal(cur).Record
	for key, value := range c.Annotations {
		if !slices.Contains(announcements, key) {
			continue
		}
		_, there := cur.Annotations[key]
		if value == nil {
			if by := m.announcedBy[key]; by != "drydock" {
				w.fail("8: took %s off %s, which is %q's", key, cur.Name, by)
			}
			if since, held := w.paused[cur.Name]; held {
				w.fail("9: took %s off %s, held since %s", key, cur.Name, since)
			}
			delete(m.announcedBy, key)
			continue
		}
		record := c.Annotations[remediations.NodeRepairKey]
		if record == nil {
			w.fail("8: set %s on %s without a record", key, cur.Name)
		}
		r, err := remediations.DecodeRecord(*record)
		switch {
		case err != nil || !slices.ContainsFunc(r.Undo, func(u remediations.Undo) bool { return u.Kind == remediations.UndoAnnotation && u.Key == key }):
			w.fail("8: set %s on %s, and its record does not say so", key, cur.Name)
		case !i.enforces(r.Policy):
			w.fail("1: set %s on %s in observe mode", key, cur.Name)
		case there:
			w.fail("8: set %s on %s, where it was", key, cur.Name)
		}
		m.announcedBy[key] = "drydock"
	}
	record, ends := c.Annotations[remediations.NodeRepairKey]
	if !ends || was == nil {
		return
	}
	if record != nil {
		if r, err := remediations.DecodeRecord(*record); err != nil || r.Phase != remediations.PhaseExhausted {
			return
		}
	}
	history := cur.Annotations[remediations.HistoryKey]
	if h := c.Annotations[remediations.HistoryKey]; h != nil {
		history = *h
	}
	for key, by := range m.announcedBy {
		left := slices.ContainsFunc(remediations.DecodeHistory(history), func(e remediations.Entry) bool {
			return slices.ContainsFunc(e.Left, func(u remediations.Undo) bool { return u.Key == key })
		})
		if _, there := cur.Annotations[key]; by == "drydock" && there && !left && !m.stripped {
			w.fail("8: the repair %s of %s is over, and %s stays", was.ID, cur.Name, key)
		}
	}
}
