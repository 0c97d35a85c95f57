package kubeapi

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// StatusConditions are the conditions in an object's status.
type StatusConditions struct {
	Conditions []metav1.Condition `json:"conditions"`
}

// Get returns the condition of that kind; nil: there is none.
func (c StatusConditions) Get(kind string) *metav1.Condition {
	return meta.FindStatusCondition(c.Conditions, kind)
}

// True reports that there is such a condition, and that it is True.
func (c StatusConditions) True(kind string) bool {
	return meta.IsStatusConditionTrue(c.Conditions, kind)
}

// False reports that there is such a condition, and that it is False.
func (c StatusConditions) False(kind string) bool {
	return meta.IsStatusConditionFalse(c.Conditions, kind)
}

// Says describes a condition that by has set.
func (c *Client) Says(by string, of *metav1.Condition) string {
	if of == nil {
		return by + " says nothing of it yet"
	}
	said := fmt.Sprintf("%s is %s, %s", of.Type, of.Status, of.Reason)
	if of.Message != "" {
		said += ", " + c.Quote(of.Message)
	}
	return said
}
