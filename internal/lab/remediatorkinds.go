package lab

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// Remediations are the kinds of remediation objects of Medik8s and of Metal3, with their API
// groups.
var Remediations = map[string]schema.GroupVersion{
	"SelfNodeRemediation":        {Group: selfNodeGroup, Version: "v1alpha1"},
	"FenceAgentsRemediation":     {Group: fenceAgentsGroup, Version: "v1alpha1"},
	"MachineDeletionRemediation": {Group: "machine-deletion-remediation.medik8s.io", Version: "v1alpha1"},
	"Metal3Remediation":          {Group: infraGroup, Version: "v1beta1"},
}

// No Go module with these kinds is available. Fields, required fields, enumerations, patterns and
// defaults come from config/crd/bases in these repositories, as read on 2026-11-25:
// medik8s/self-node-remediation, medik8s/fence-agents-remediation,
// medik8s/machine-deletion-remediation and metal3-io/cluster-api-provider-metal3. The API server
// drops unknown fields.
var (
	text     = map[string]any{"type": "string"}
	texts    = map[string]any{"type": "object", "additionalProperties": text}
	number   = map[string]any{"type": "integer"}
	instant  = map[string]any{"type": "string", "format": "date-time"}
	duration = map[string]any{"type": "string", "pattern": `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`}

	specs = map[string]map[string]any{
		"SelfNodeRemediation": fields(map[string]any{"remediationStrategy": oneOf("Automatic", "ResourceDeletion", "OutOfServiceTaint")}),
		"FenceAgentsRemediation": fields(map[string]any{
			"agent": map[string]any{"type": "string", "pattern": "fence_.+"}, "retrycount": or(number, int64(5)), "retryinterval": or(duration, "5s"), "timeout": or(duration, "60s"),
			"sharedparameters": texts, "nodeparameters": map[string]any{"type": "object", "additionalProperties": texts},
			"sharedSecretName": text, "nodeSecretNames": texts, "remediationStrategy": oneOf("ResourceDeletion", "OutOfServiceTaint"),
		}, "agent"),
		"MachineDeletionRemediation": fields(nil),
		"Metal3Remediation":          fields(map[string]any{"strategy": fields(map[string]any{"type": text, "retryLimit": number, "timeout": text})}),
	}
	statuses = map[string]map[string]any{
		"SelfNodeRemediation":        fields(map[string]any{"conditions": conditions, "lastError": text, "phase": text, "timeAssumedRebooted": instant}),
		"FenceAgentsRemediation":     fields(map[string]any{"conditions": conditions, "lastUpdateTime": instant}),
		"MachineDeletionRemediation": fields(map[string]any{"conditions": conditions}),
		"Metal3Remediation":          fields(map[string]any{"phase": text, "retryCount": number, "lastRemediated": instant}),
	}
	conditions = map[string]any{
		"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": []any{"type"},
		"items": fields(map[string]any{
			"type": text, "status": map[string]any{"type": "string", "enum": []any{"True", "False", "Unknown"}}, "lastTransitionTime": instant,
			"reason":  map[string]any{"type": "string", "minLength": int64(1), "pattern": `^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`},
			"message": text, "observedGeneration": number,
		}, "type", "status", "lastTransitionTime", "reason", "message"),
	}
)

func fields(of map[string]any, required ...string) map[string]any {
	out := map[string]any{"type": "object"}
	if of != nil {
		out["properties"] = of
	}
	if len(required) > 0 {
		out["required"] = required
	}
	return out
}

func oneOf(first string, others ...string) map[string]any {
	all := []any{first}
	for _, o := range others {
		all = append(all, o)
	}
	return map[string]any{"type": "string", "enum": all, "default": first}
}

func or(of map[string]any, value any) map[string]any {
	out := map[string]any{"default": value}
	for k, v := range of {
		out[k] = v
	}
	return out
}

// AddRemediatorKinds applies the kinds of Medik8s' and Metal3's remediation objects and of their
// templates, without a remediator.
func (l *Lab) AddRemediatorKinds(ctx context.Context) error {
	for kind, of := range Remediations {
		template := fields(map[string]any{"template": fields(map[string]any{"spec": specs[kind]}, "spec")}, "template")
		for name, shape := range map[string]map[string]any{
			kind:              {"spec": specs[kind], "status": statuses[kind]},
			kind + "Template": {"spec": template, "status": fields(nil)},
		} {
			if err := l.addShape(ctx, of, name, shape); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *Lab) addShape(ctx context.Context, of schema.GroupVersion, kind string, shape map[string]any) error {
	crd := labKind(of.Group, of.Version, kind)
	version := crd["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any)
	version["schema"] = map[string]any{"openAPIV3Schema": fields(shape)}
	file, err := yaml.Marshal(crd)
	if err == nil {
		err = l.addKind(ctx, file)
	}
	if err != nil {
		return fmt.Errorf("adding the kind %s: %w", kind, err)
	}
	return nil
}

// The plural is part of URL paths.
func pluralOf(kind string) string { return strings.ToLower(kind) + "s" }
