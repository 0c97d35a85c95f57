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

// stopWithin begins when the remediation object is marked as timed out, after the repair attempt
// has ended.
const stopWithin = time.Minute

// Ender deletes the remediation objects of attempts that have ended. It lists the objects at each
// run, so it also finds those that a crash left behind.
type Ender struct {
	*Client
	// Registry has the repair steps of other programs. Records on Nodes may name them.
	Registry remediations.Registry
}

// End deletes the remediation objects whose attempt has ended. The error joins the errors of all
// objects.
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

// If the remediator may still be working, end only sets timedOutKey, at which remediators stop. A
// later call deletes the object.
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

func (e Ender) stopped(one *object) bool {
	at, err := time.Parse(time.RFC3339, one.Annotations[timedOutKey])
	return err == nil && e.o.Now().Sub(at) >= stopWithin
}
