package actions

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/internal/cli"
	"drydock.dev/drydock/internal/inspect"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/admission"
)

var why = Parameter{Name: "why", Ask: "Why? For everyone who reads the node's state later", Example: "disk swap, ticket 4711"}

// Pause is the action that makes Drydock start nothing new on a node.
func Pause() *Action {
	return &Action{
		Name: "pause", Keys: []string{remediations.PauseKey},
		Will: "Drydock starts nothing new on the node. It still verifies a step that it has issued.",
		Parameters: []Parameter{
			{Name: "for", Ask: "For how long? Empty: until a person resumes the node", Example: "30m, 2h or 1d"},
			why,
		},
		prepare: func(given Params, now time.Time) (apply, error) {
			why, err := reason(given["why"])
			if err != nil {
				return nil, err
			}
			value, end := "true", ""
			if given["for"] != "" {
				length, err := model.ParseDuration(given["for"])
				switch {
				case err != nil:
					return nil, cli.Usagef("--for is %q; write a duration, for example 30m, 2h or 1d", plain(given["for"]))
				case length <= 0:
					return nil, cli.Usage(errors.New("--for must be longer than 0, for example 30m, 2h or 1d"))
				}
				value = inspect.Stamp(now.Add(time.Duration(length)))
				end = value + ", or "
			}
			value = strings.TrimSpace(value + " " + why)
			return func(ctx context.Context, w *Writer, node string) (string, error) {
				n, err := w.write(ctx, node, "pausing "+node, annotations{remediations.PauseKey: value})
				if err != nil {
					return "", err
				}
				until := fmt.Sprintf("until %s`kubectl drydock resume %s`", end, node)
				if r := remediations.InFlight(n); r != nil {
					return fmt.Sprintf("%s is paused %s: Drydock starts nothing new, and still verifies the %s that repair %s has issued. To follow it: `kubectl drydock status -w`.", node, until, r.Step.Name, r.ID), nil
				}
				return fmt.Sprintf("%s is paused %s: Drydock starts no repair there. `kubectl drydock status` shows what the pause holds.", node, until), nil
			}, nil
		},
	}
}

// Resume is the action that ends a node's pause and its break-glass.
func Resume() *Action {
	return &Action{
		Name: "resume", Keys: []string{remediations.PauseKey, remediations.BreakGlassKey},
		Will: "The pause and the break-glass are removed, and Drydock may repair the node again.",
		refuses: func(n *corev1.Node) error {
			if ended, _ := ends(n); len(ended) == 0 {
				return fmt.Errorf("%s is not paused and has no break-glass set", n.Name)
			}
			return nil
		},
		prepare: func(Params, time.Time) (apply, error) { return resume, nil },
	}
}

func ends(n *corev1.Node) (ended []string, a annotations) {
	a = annotations{}
	for _, k := range []struct{ key, name string }{{remediations.PauseKey, "the pause"}, {remediations.BreakGlassKey, "break-glass"}} {
		if _, ok := n.Annotations[k.key]; ok {
			a[k.key], ended = nil, append(ended, k.name)
		}
	}
	return ended, a
}

func resume(ctx context.Context, w *Writer, node string) (string, error) {
	var ended []string
	excluded := ""
	err := w.writeAsRead(ctx, node, "resuming "+node, func(n *corev1.Node) (ruling, error) {
		var a annotations
		ended, a = ends(n)
		excluded = ""
		if remediations.Excluded(n) {
			excluded = fmt.Sprintf(", but the label %s=%s still keeps Drydock away", remediations.ExcludeLabel, n.Labels[remediations.ExcludeLabel])
		}
		return ruling{annotations: a, about: strings.Join(ended, " and ")}, nil
	})
	switch {
	case err != nil:
		return "", err
	case len(ended) == 0:
		return fmt.Sprintf("%s is not paused and has no break-glass set%s; nothing was written.", node, excluded), nil
	}
	return fmt.Sprintf("%s: %s ended%s. Repairs that waited for this continue by themselves: `kubectl drydock status -w`.", node, strings.Join(ended, " and "), excluded), nil
}

// BreakGlass is the action that lets people change a node while Drydock repairs it. Without it, the
// admission webhook denies such changes.
func BreakGlass() *Action {
	needed := why
	needed.Required = true
	return &Action{
		Name: "break-glass", Verb: admission.VerbFor(remediations.BreakGlassKey), Keys: []string{remediations.BreakGlassKey}, Parameters: []Parameter{needed},
		Will: "For one hour, or until resume, admission lets people change the node although it is under repair, and Drydock starts nothing new there.",
		prepare: func(given Params, _ time.Time) (apply, error) {
			why, err := reason(given["why"])
			if err != nil {
				return nil, err
			}
			if why == "" {
				return nil, cli.Usage(errors.New("--why is required: give the reason, for everyone who reads the node's state later"))
			}
			return func(ctx context.Context, w *Writer, node string) (string, error) {
				if _, err := w.write(ctx, node, "setting break-glass on "+node, annotations{remediations.BreakGlassKey: why}); err != nil {
					return "", err
				}
				return fmt.Sprintf("Break-glass is set on %s for one hour, or until `kubectl drydock resume %s`: admission allows every change of the Node except of Drydock's own keys, and Drydock starts nothing new there.", node, node), nil
			}, nil
		},
	}
}
