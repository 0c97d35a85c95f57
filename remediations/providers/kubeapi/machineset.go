package kubeapi

import (
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// MachineSet has the fields of a MachineSet that Drydock reads. Both Cluster API and OpenShift's
// Machine API have these fields.
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

// Wanted returns how many Machines the set should have. It returns 1 if spec.replicas is missing.
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

// SetBefore has the facts that Drydock records on the Node before the replacement of a machine of a
// MachineSet. They are needed to prove the replacement afterwards.
type SetBefore struct {
	Machine    string `json:"machine"`
	UID        string `json:"uid"`
	ProviderID string `json:"providerID"`
	// Set is the name of the MachineSet that owns the Machine.
	Set    string `json:"set"`
	SetUID string `json:"setUID"`
	// Newest is the creation time of the MachineSet's youngest Machine, by the API server's clock.
	// A Machine with a later creation time is new.
	Newest time.Time `json:"newest"`
}

// BeforeOf returns the facts about a machine before its replacement. owned has all machines of its
// set.
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

// Succession combines the recorded facts with the set's present state. The parameters called and
// old are texts for messages: the set's name, and a description of the old machine. old is empty if
// the old machine is not listed.
func (b *SetBefore) Succession(set *MachineSet, called, old string) Succession {
	return Succession{Set: called, Old: old, ProviderID: b.ProviderID, Newest: b.Newest, Seen: set.Status.Replicas, Wanted: set.Wanted()}
}
