package inspect

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/internal/config"
)

// clockSkew is how far the clocks of the leader and of the API server may differ. A Lease counts as
// expired only clockSkew after its end.
const clockSkew = time.Minute

// Leadership says which replica of Drydock leads.
type Leadership struct {
	// Lease is the Lease's namespace and name.
	Lease  string `json:"lease,omitempty"`
	Holder string `json:"holder,omitempty"`
	// None says why no replica leads. It is empty if one leads, or if that is unknown. Since is when
	// the last leader renewed the Lease.
	None  string     `json:"none,omitempty"`
	Since *time.Time `json:"since,omitempty"`
	// Unseen says why it is unknown whether a replica leads.
	Unseen string `json:"unseen,omitempty"`
}

func (r *Reader) electedBy(ctx context.Context, cfg *config.Config) (Leadership, error) {
	if !cfg.LeaderElection.Enabled {
		return Leadership{Unseen: "leaderElection.enabled is false, so no Lease shows whether Drydock runs"}, nil
	}
	at := cfg.LeaderElection.Lease
	l, err := r.ReadLeader(ctx, at.Namespace, at.Name)
	if err == nil && l.absent() {
		l.None, l.Unseen = "no replica leads: there is no Lease "+l.Lease, ""
	}
	return l, err
}

// absent does not prove that no replica leads, because the Lease's name may be a guess.
func (l Leadership) absent() bool { return l.Unseen == noLease(l.Lease) }

func noLease(name string) string {
	return fmt.Sprintf("there is no Lease %s; it may have another name or namespace", name)
}

// ReadLeader reads the Lease and judges its age by the API server's clock, because the caller's
// clock may be wrong.
func (r *Reader) ReadLeader(ctx context.Context, namespace, name string) (Leadership, error) {
	l := Leadership{Lease: namespace + "/" + name}
	lease, err := r.Leases(namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		l.Unseen = noLease(l.Lease)
		return l, nil
	case apierrors.IsForbidden(err):
		l.Unseen = err.Error()
		return l, nil
	case err != nil:
		return l, Asking(err, "reading Lease "+l.Lease, "")
	}
	spec := lease.Spec
	if spec.HolderIdentity != nil {
		l.Holder = *spec.HolderIdentity
	}
	if spec.RenewTime == nil || spec.LeaseDurationSeconds == nil {
		l.Unseen = "Lease " + l.Lease + " has no time of renewal"
		return l, nil
	}
	now, whose := r.Clock.Now(r.Now())
	renewed := spec.RenewTime.Time
	over := renewed.Add(time.Duration(*spec.LeaseDurationSeconds)*time.Second + clockSkew)
	switch {
	case l.Holder == "":
		l.Since = &renewed
		l.None = fmt.Sprintf("no replica leads since %s: the last leader gave up Lease %s",
			Since(now, renewed), l.Lease)
	case now.After(over):
		l.Since = &renewed
		l.None = fmt.Sprintf("no replica leads since %s: %s renewed Lease %s for the last time then, by the clock of %s",
			Since(now, renewed), l.Holder, l.Lease, whose)
	case renewed.After(now.Add(clockSkew)):
		l.Unseen = fmt.Sprintf("Lease %s was renewed at %s, which is in the future by the clock of %s",
			l.Lease, Stamp(renewed), whose)
	}
	return l, nil
}

func (l Leadership) lines() []Line {
	switch {
	case l.None != "":
		same := l.Lease + l.Holder
		if l.Since != nil {
			same += Stamp(*l.Since)
		}
		return []Line{{Label: leaderLabel, Subject: "none", Text: l.None + "; until a replica leads, Drydock does nothing", same: same}}
	case l.Unseen != "":
		return []Line{{Label: leaderLabel, Subject: "not seen", Text: "not seen: " + l.Unseen}}
	}
	return nil
}

// Clock holds the Date header of the API server's last answer.
type Clock struct{ date atomic.Pointer[time.Time] }

// Now returns the time, and whose clock shows it. It uses the API server's clock. If no answer of
// the API server had a date, it returns the caller's time, own.
func (s *Clock) Now(own time.Time) (now time.Time, whose string) {
	if s != nil {
		if at := s.date.Load(); at != nil {
			return *at, "the API server"
		}
	}
	return own, "this machine"
}

// Wrap returns a transport that sets the clock from the Date header of every answer.
func (s *Clock) Wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		res, err := next.RoundTrip(r)
		if err != nil {
			return nil, err //nolint:wrapcheck // a transport passes errors on unchanged
		}
		if at, err := http.ParseTime(res.Header.Get("Date")); err == nil {
			s.date.Store(&at)
		}
		return res, nil
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
