package config

import (
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/rescue/apiserver"
	"drydock.dev/drydock/remediations/targets/location"
	"drydock.dev/drydock/remediations/targets/sidecar"
)

// kinds are the kinds of targets besides nodes. A new kind needs a folder, one line here, and a key
// in the schema of a policy's target.
var kinds = []*remediations.TargetKind{&apiserver.Kind, &location.Kind, &sidecar.Kind}
