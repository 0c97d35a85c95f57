package webhook

import (
	"bytes"
	"encoding/json"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// The fields at the beginning of a review. An API server writes them before the objects.
type head struct {
	UID            types.UID
	Name, Username string
}

// A review that is longer than the limit is denied: a client that can make a Node large must not
// escape the checks that way. Only Drydock's own requests are allowed. A denial needs status 200,
// because the API server allows a request when the webhook answers with an HTTP error.
func (h *handler) answerTooLarge(w http.ResponseWriter, beginning []byte, why error) {
	about := readHead(beginning)
	if about.UID == "" { // not written by an API server
		http.Error(w, why.Error(), http.StatusRequestEntityTooLarge)
		return
	}
	answer := ctrladmission.Allowed("")
	if about.Username != h.self {
		h.say(nil, "Drydock denied a request, because its object is too large to check", about.Name, about.Username, "", string(tooLarge))
		answer = ctrladmission.Denied("Drydock cannot check this change, because the object is too large (" + why.Error() +
			"). Remove labels, annotations, taints or conditions of the object first")
		h.metrics.total.WithLabelValues(denied, string(tooLarge)).Inc()
	}
	answer.UID = about.UID
	writeAnswer(w, &answer.AdmissionResponse)
}

func writeAnswer(w http.ResponseWriter, answer *admissionv1.AdmissionResponse) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "AdmissionReview"}, Response: answer,
	})
}

// Fields that are not found in the beginning of a cut-off review are empty.
func readHead(beginning []byte) (about head) {
	d := json.NewDecoder(bytes.NewReader(beginning))
	var user struct{ Username string }
	members(d, func(name string) bool {
		if name != "request" {
			return skip(d)
		}
		members(d, func(name string) bool {
			switch name {
			case "uid":
				return d.Decode(&about.UID) == nil
			case "name":
				return d.Decode(&about.Name) == nil
			case "userInfo":
				return d.Decode(&user) == nil
			case "object", "oldObject":
				return false
			}
			return skip(d)
		})
		return false
	})
	about.Username = user.Username
	return about
}

// members calls read for each member of the next JSON object until read returns false. read must
// consume the value.
func members(d *json.Decoder, read func(name string) bool) {
	if begin, err := d.Token(); err != nil || begin != json.Delim('{') {
		return
	}
	for d.More() {
		name, err := d.Token()
		if text, ok := name.(string); err != nil || !ok || !read(text) {
			return
		}
	}
}

func skip(d *json.Decoder) bool {
	var value json.RawMessage
	return d.Decode(&value) == nil
}
