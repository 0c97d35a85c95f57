package kubeapi

import (
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// MachineSet has the fields of a MachineSet that Drydock reads. It is for Cluster API and for
// OpenShift's Machine API.
type MachineSet struct {
	metav1.TypeMeta
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Replicas *int `json:"replicas"`
	} `json:"spec"`
	Status struct {
		Replicas int `json:"replicas"`
	} `json:"status"`
}

// Wanted returns how many Machines the set should have. If the field is missing, its default is 1.
func (s *MachineSet) Wanted() int {
	if s.Spec.Replicas == nil {
		return 1
	}
	return *s.Spec.Replicas
}

// OwnedBy returns the machines whose controller is the set with that UID.
func OwnedBy[M any, P interface {
	*M
	metav1.Object
}](all []M, set types.UID) (out []M) {
	for i := range all {
		if of := metav1.GetControllerOf(P(&all[i])); of != nil && of.UID == set {
			out = append(out, all[i])
		}
	}
	return out
}

// SetBefore is recorded with the intent to replace a machine of a MachineSet. It is needed
// afterwards to prove the replacement.
type SetBefore struct {
	Machine    string `json:"machine"`
	UID        string `json:"uid"`
	ProviderID string `json:"providerID"`
	// Set is the MachineSet that owns the Machine.
	Set    string `json:"set"`
	SetUID string `json:"setUID"`
	// Newest is when the youngest Machine of the MachineSet was created, by the API server's clock.
	Newest time.Time `json:"newest"`
}

// BeforeOf returns the SetBefore of a machine. owned are all machines of its set.
func BeforeOf[M any, P interface {
	*M
	metav1.Object
}](machine P, providerID string, set *MachineSet, owned []M) SetBefore {
	b := SetBefore{Machine: machine.GetName(), UID: string(machine.GetUID()), ProviderID: providerID, Set: set.Name, SetUID: string(set.UID)}
	for i := range owned {
		if made := P(&owned[i]).GetCreationTimestamp().UTC(); made.After(b.Newest) {
			b.Newest = made
		}
	}
	return b
}

// Whole returns an error if a field of the record is empty.
func (b *SetBefore) Whole() error {
	if b.Machine == "" || b.UID == "" || b.ProviderID == "" || b.Set == "" || b.SetUID == "" || b.Newest.IsZero() {
		return errors.New("the record on the Node lacks the Machine or the MachineSet before the replacement")
	}
	return nil
}

// Succession returns the evidence for the machine's replacement, with the set's present state.
// called is the set's name in messages, and old is Succession.Old.
func (b *SetBefore) Succession(set *MachineSet, called, old string) Succession {
	return Succession{Set: called, Old: old, ProviderID: b.ProviderID, Newest: b.Newest, Seen: set.Status.Replicas, Wanted: set.Wanted()}
}
