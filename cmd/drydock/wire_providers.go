package main

import (
	"time"

	"drydock.dev/drydock/internal/config"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/civo"
	"drydock.dev/drydock/remediations/engine"
)

// newActuators are the remediations that the configured providers can carry out, and how long one call may take.
func newActuators(cfg *config.Config, late func(node, attempt string, outcome remediations.CallOutcome, why string)) (map[string]engine.Actuator, time.Duration, error) {
	actuators := map[string]engine.Actuator{}
	c := cfg.Civo
	if c == nil {
		return actuators, callMargin, nil
	}
	client, err := civo.New(civo.Options{
		APIURL: c.APIURL.String(), ClusterID: c.ClusterID, Region: c.Region, APIKeyFile: c.APIKeyFile,
		Timeout: c.Timeout, UserAgentVersion: thisBuild().Now(),
		Late: func(m civo.Machine, err error) {
			outcome, err := civo.Outcome(err)
			late(m.NodeName, m.Ref, outcome, errorText(err))
		},
	})
	if err != nil {
		return nil, 0, err
	}
	actuators["reboot"] = civo.Rebooter{Client: client}
	actuators["replace"] = civo.Replacer{Client: client}
	return actuators, callMargin + 2*c.Timeout, nil // the machine is looked up first
}
