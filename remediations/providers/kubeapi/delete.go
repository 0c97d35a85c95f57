package kubeapi

import (
	"encoding/json"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Deletion returns the request that deletes the object with that UID. A later object of the same
// name is not deleted.
func Deletion(path string, uid types.UID) Request {
	return deletion(path, metav1.Preconditions{UID: &uid})
}

// DeletionAsRead returns the request that deletes the object if it has not changed since it was
// read. So the API server refuses if the object's owner has begun work on it meanwhile.
func DeletionAsRead(path string, read metav1.Object) Request {
	uid, version := read.GetUID(), read.GetResourceVersion()
	return deletion(path, metav1.Preconditions{UID: &uid, ResourceVersion: &version})
}

func deletion(path string, only metav1.Preconditions) Request {
	return Request{Method: http.MethodDelete, Path: path, ContentType: "application/json", Body: metav1.DeleteOptions{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"}, Preconditions: &only,
	}}
}

// Deleted reports whether the body of a successful answer shows that the object of that kind and
// UID is being deleted or is gone. It decodes the body into shown.
func Deleted(body []byte, kind string, uid types.UID, shown interface {
	Typed
	metav1.Object
}) bool {
	var done metav1.Status
	if json.Unmarshal(body, &done) == nil && done.Kind == "Status" {
		return done.Status == metav1.StatusSuccess
	}
	return json.Unmarshal(body, shown) == nil && shown.GetObjectKind().GroupVersionKind().Kind == kind && shown.GetUID() == uid && shown.GetDeletionTimestamp() != nil
}
