// Package deploy has the examples of this folder that programs read.
package deploy

import _ "embed"

//go:embed alertmanager.yaml
var alertmanager []byte

// Alertmanager is the shipped configuration of an Alertmanager without the operator: its routes,
// and its rules of inhibition.
func Alertmanager() []byte { return alertmanager }
