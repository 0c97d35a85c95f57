package kubeapi

import (
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// MachineSet is that of Cluster API or of OpenShift's Machine API.
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

// Wanted returns how many Machines the set should have; a missing spec.replicas means 1.
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

// SetBefore is recorded on the Node before a machine of a MachineSet is replaced. It is needed to
// prove the replacement afterwards.
type SetBefore struct {
	Machine    string `json:"machine"`
	UID        string `json:"uid"`
	ProviderID string `json:"providerID"`
	// Set is the name of the MachineSet that owns the Machine.
	Set    string `json:"set"`
	SetUID string `json:"setUID"`
	// Newest is the creation time of the MachineSet's youngest Machine, by the API server's clock.
	Newest time.Time `json:"newest"`
}

// BeforeOf returns the SetBefore of a machine. owned has all machines of its set.
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

// Whole returns an error if a field is empty.
func (b *SetBefore) Whole() error {
	if b.Machine == "" || b.UID == "" || b.ProviderID == "" || b.Set == "" || b.SetUID == "" || b.Newest.IsZero() {
		return errors.New("the record on the Node lacks the Machine or the MachineSet before the replacement")
	}
	return nil
}

// Succession compares the set with its recorded state. called is the set's name in messages. old
// describes the old machine, and is empty if it is not listed.
func (b *SetBefore) Succession(set *MachineSet, called, old string) Succession {
	return Succession{Set: called, Old: old, ProviderID: b.ProviderID, Newest: b.Newest, Seen: set.Status.Replicas, Wanted: set.Wanted()}
}
