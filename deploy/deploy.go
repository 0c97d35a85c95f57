// Package deploy embeds the example files of this folder that programs read.
package deploy

import _ "embed"

//go:embed alertmanager.yaml
var alertmanager []byte

// Alertmanager returns the shipped configuration of an Alertmanager without the operator, with its
// routes and inhibition rules.
func Alertmanager() []byte { return alertmanager }
