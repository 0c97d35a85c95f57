package external

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/providers/kubeapi"
)

// stopWithin is the time that a remediator gets to stop after its attempt has timed out and Drydock
// has set the annotation for that.
const stopWithin = time.Minute

// Ender deletes the remediation objects whose attempts have ended. It lists the existing objects,
// so it also finds objects that were left by a crash.
type Ender struct {
	*Client
	// Registry has the remediations that records on Nodes may name.
	Registry remediations.Registry
}

// End checks each object that Drydock made, and deletes it if its attempt has ended. It returns the
// joined errors.
func (e Ender) End(ctx context.Context) error {
	var all []error
	for _, t := range e.o.Templates {
		all = append(all, e.endAll(ctx, t))
	}
	return errors.Join(all...)
}

func (e Ender) endAll(ctx context.Context, t remediations.Template) error {
	api, kind := e.of(t), kindOf(t)
	objects, err := kubeapi.List[object](ctx, api, plural(kind), kind, url.Values{"labelSelector": {madeLabel + "=" + madeBy}})
	if err != nil {
		return e.core.Sentence(err, "listing Drydock's remediation objects")
	}
	var all []error
	for i := range objects {
		one := &objects[i]
		if one.Annotations[attemptKey] == "" || one.DeletionTimestamp != nil {
			continue // the object is not Drydock's, or is already being deleted
		}
		if err := e.end(ctx, api, one); err != nil {
			all = append(all, e.core.Sentence(err, "ending %s", kubeapi.Name(one)))
		}
	}
	return errors.Join(all...)
}

// end deletes the object if its attempt has ended. If the remediator may still be working, end
// first sets the annotation that it timed out, and deletes the object later.
func (e Ender) end(ctx context.Context, api *kubeapi.Client, one *object) error {
	over, cured, err := e.core.Over(ctx, e.Registry, one.about(), one.Annotations[attemptKey])
	switch {
	case err != nil || !over:
		return err
	case cured, meta.IsStatusConditionTrue(one.Status.Conditions, "Succeeded"), meta.IsStatusConditionFalse(one.Status.Conditions, "Processing"),
		one.Status.Conditions == nil && one.Status.Phase == "", e.stopped(one):
		return api.TakeBack(ctx, kubeapi.Deletion(plural(one.Kind)+"/"+one.Name, one.UID))
	case one.Annotations[timedOutKey] != "":
		return nil
	}
	change := map[string]any{"metadata": map[string]any{"uid": one.UID, "annotations": map[string]string{timedOutKey: e.o.Now().UTC().Format(time.RFC3339)}}}
	return api.TakeBack(ctx, kubeapi.Request{Method: http.MethodPatch, Path: plural(one.Kind) + "/" + one.Name, ContentType: "application/merge-patch+json", Body: change})
}

// stopped reports whether the remediator has had stopWithin to stop.
func (e Ender) stopped(one *object) bool {
	at, err := time.Parse(time.RFC3339, one.Annotations[timedOutKey])
	return err == nil && e.o.Now().Sub(at) >= stopWithin
}
