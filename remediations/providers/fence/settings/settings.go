// Package settings has the section providers.fence of the configuration: fence agents.
package settings

import (
	_ "embed"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8slabels "k8s.io/apimachinery/pkg/labels"

	"drydock.dev/drydock/internal/config/section"
	"drydock.dev/drydock/remediations"
)

//go:embed schema.json
var schema string

// Section is the key providers.fence of the configuration.
var Section = section.Section{Key: "fence", Schema: schema, Steps: map[string]string{"reboot": "", "powerOff": ""}, Read: section.Declared[Fence]()}

// Fence is the content of providers.fence.
type Fence struct {
	Agents []Agent `json:"agents"`
	Folder string  `json:"folder"`
	// Timeout limits one run of an agent.
	Timeout time.Duration `json:"timeout" most:"5m, a machine is off by then"`
	// NodeSelector selects the Nodes that the provider serves. Nil selects all Nodes.
	NodeSelector k8slabels.Selector `json:"nodeSelector"`
}

// Agent is a fence agent, and the machines whose power it can switch.
type Agent struct {
	// Program is the absolute path of the agent.
	Program string            `json:"agent"`
	Options map[string]string `json:"options"`
	// SecretFiles has the paths of files with secret values, by the name of the agent's option.
	SecretFiles map[string]string `json:"secretFiles"`
	// MachinesFile is the path of a table of machines. Empty means the machines of all Nodes that
	// Selector selects.
	MachinesFile string                `json:"machinesFile"`
	Selects      *metav1.LabelSelector `json:"nodeSelector"`
	Selector     k8slabels.Selector    `json:"-"`
}

// PerNode in the value of an option stands for the Node's name.
const PerNode = "{node}"

var option = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9_-]{0,63}$`)

// own are the agent's options that only Drydock may set. With some of them, an agent writes its
// secrets to a log or file.
var own = []string{"action", "option", "debug", "debug_file", "verbose", "verbose_level", "quiet"}

func forbids(name string) string {
	switch {
	case !option.MatchString(name):
		return "is not the name of an option"
	case slices.Contains(own, strings.ReplaceAll(name, "-", "_")):
		return "is an option that only Drydock may set"
	}
	return ""
}

// Check implements section.Checker.
func (c *Fence) Check(r section.Reader, at section.Pointer) {
	for i := range c.Agents {
		a, here := &c.Agents[i], at.To("agents", i)
		if !path.IsAbs(a.Program) {
			a.Program = path.Join(c.Folder, a.Program)
		}
		perNode := false
		for name, value := range a.Options {
			if why := forbids(name); why != "" {
				r.Fault(here.To("options", name), "%s; remove it", why)
			}
			perNode = perNode || strings.Contains(value, PerNode)
		}
		for name, file := range a.SecretFiles {
			if why := forbids(name); why != "" {
				r.Fault(here.To("secretFiles", name), "%s; remove it", why)
			} else if _, twice := a.Options[name]; twice {
				r.Fault(here.To("secretFiles", name), "is also in options; remove it there")
			}
			a.SecretFiles[name] = r.SecretFile(here.To("secretFiles", name), file)
		}
		a.MachinesFile = r.SecretFile(here.To("machinesFile"), a.MachinesFile)
		if a.Selects != nil {
			a.Selector = r.Selector(here.To("nodeSelector"), a.Selects)
		}
		switch {
		case (a.MachinesFile == "") == (a.Selects == nil):
			r.Fault(here, "needs either machinesFile or nodeSelector, to say which machines the agent reaches")
		case a.Selects != nil && !perNode:
			r.Fault(here.To("nodeSelector"), "needs an option with %s, for example plug: %q; without it, all these nodes would be the same machine", PerNode, PerNode)
		}
	}
}

// Serves implements section.Provider.
func (c *Fence) Serves() remediations.Provider {
	return remediations.Provider{Steps: []string{"reboot", "powerOff"}, NodeSelector: c.NodeSelector}
}

// Testifies implements section.Testifier.
func (c *Fence) Testifies() bool { return true }
