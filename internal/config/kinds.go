package config

import (
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/targets/apiserver"
)

// kinds are the kinds of target that a policy may be about, beside nodes. A new one is its folder and one line here.
var kinds = []*remediations.TargetKind{&apiserver.Kind, &remediations.LocationKind, &remediations.SidecarKind}
