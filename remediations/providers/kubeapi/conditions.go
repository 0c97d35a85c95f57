package kubeapi

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// StatusConditions is the part of an object's status that has its conditions.
type StatusConditions struct {
	Conditions []metav1.Condition `json:"conditions"`
}

// Get returns the condition of that type, or nil if there is none.
func (c StatusConditions) Get(kind string) *metav1.Condition {
	return meta.FindStatusCondition(c.Conditions, kind)
}

// True reports whether the condition of that type exists and is True.
func (c StatusConditions) True(kind string) bool {
	return meta.IsStatusConditionTrue(c.Conditions, kind)
}

// False reports whether the condition of that type exists and is False.
func (c StatusConditions) False(kind string) bool {
	return meta.IsStatusConditionFalse(c.Conditions, kind)
}

// Says describes a condition for a message. by is the program that sets it; nil means that it was
// not set yet.
func (c *Client) Says(by string, of *metav1.Condition) string {
	if of == nil {
		return by + " has not set the condition yet"
	}
	said := fmt.Sprintf("%s is %s, %s", of.Type, of.Status, of.Reason)
	if of.Message != "" {
		said += ", " + c.Quote(of.Message)
	}
	return said
}
