package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/intake"
)

// WriteAnnotations returns a writer of annotations. Each write names the Node's UID, but not its
// resourceVersion: each alert has its own key, so writers do not overwrite each other's. It does
// not work with a fake client.
func WriteAnnotations(client kubernetes.Interface) intake.AnnotationWriter {
	return func(ctx context.Context, name string, uid types.UID, annotations map[string]*string) error {
		body, err := json.Marshal(nodePatch{Metadata: patchMeta{UID: uid, Annotations: annotations}})
		if err != nil {
			return fmt.Errorf("encoding a patch of Node %s: %w", name, err)
		}
		err = client.CoreV1().RESTClient().Patch(types.MergePatchType).Resource("nodes").Name(name).
			VersionedParams(&metav1.PatchOptions{FieldManager: remediations.FieldManager}, scheme.ParameterCodec).
			SetHeader("Accept", metadataOnly).Body(body).Do(ctx).Error()
		if err == nil {
			return nil
		}
		err = translate("writing on Node "+name, err)
		if errors.Is(err, engine.ErrNotFound) || errors.Is(err, engine.ErrConflict) {
			return fmt.Errorf("%w: %w", intake.ErrGone, err)
		}
		return err
	}
}

// metadataOnly requests an answer without the Node's status, which is mostly images. While many
// alerts arrive there are thousands of answers, and nothing reads them. An API server that does not
// support this answers with the whole Node.
const metadataOnly = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
