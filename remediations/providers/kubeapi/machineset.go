package kubeapi

import (
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// MachineSet has the fields that are read of a MachineSet, of Cluster API or of OpenShift's Machine
// API.
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

// Wanted returns how many Machines the set should have. The field has a default.
func (s *MachineSet) Wanted() int {
	if s.Spec.Replicas == nil {
		return 1
	}
	return *s.Spec.Replicas
}

// OwnedBy returns the machines that the set of that UID controls.
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

// SetBefore is recorded with the intent to replace a machine of a set.
type SetBefore struct {
	Machine    string `json:"machine"`
	UID        string `json:"uid"`
	ProviderID string `json:"providerID"`
	// Set is the MachineSet that owns the Machine.
	Set    string `json:"set"`
	SetUID string `json:"setUID"`
	// Newest is when the youngest Machine of the MachineSet was made, by the API server's clock.
	Newest time.Time `json:"newest"`
}

// BeforeOf returns the record of a machine, its set, and the machines that the set owns.
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

// Whole returns an error if the record lacks a field.
func (b *SetBefore) Whole() error {
	if b.Machine == "" || b.UID == "" || b.ProviderID == "" || b.Set == "" || b.SetUID == "" || b.Newest.IsZero() {
		return errors.New("the record does not say which Machine and MachineSet there were before")
	}
	return nil
}

// Succession returns the evidence of the set in its present state for the machine's replacement.
// called is the set's name, old is Succession.Old.
func (b *SetBefore) Succession(set *MachineSet, called, old string) Succession {
	return Succession{Set: called, Old: old, ProviderID: b.ProviderID, Newest: b.Newest, Seen: set.Status.Replicas, Wanted: set.Wanted()}
}
