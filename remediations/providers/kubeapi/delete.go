package kubeapi

import (
	"encoding/json"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Deletion returns a request that deletes the object only if it has this UID, and not a newer one
// of the same name.
func Deletion(path string, uid types.UID) Request {
	return deletion(path, metav1.Preconditions{UID: &uid})
}

// DeletionAsRead returns a request that deletes the object only if it is unchanged since it was
// read. So the API server refuses if another program has begun to work on the object.
func DeletionAsRead(path string, read metav1.Object) Request {
	uid, version := read.GetUID(), read.GetResourceVersion()
	return deletion(path, metav1.Preconditions{UID: &uid, ResourceVersion: &version})
}

func deletion(path string, only metav1.Preconditions) Request {
	return Request{Method: http.MethodDelete, Path: path, ContentType: "application/json", Body: metav1.DeleteOptions{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"}, Preconditions: &only,
	}}
}

// Deleted reports whether the object of that kind and UID is being deleted or is gone. body is the
// API server's successful answer to the deletion, and is decoded into shown.
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
