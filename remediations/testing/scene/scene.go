// Package scene describes the input of decisions for tests, in YAML files that a person can write
// and read. A scene is the known state of a node, of a pod's sidecar or of a location. The tests of
// the core and of each kind of target use it. Only tests import this package.
package scene

import (
	"regexp"
	"strings"
	"time"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/signs"
)

// Noon is the time of every scene. In a file, <now>, <now-5m> or <now+1h30m> stands for a time
// relative to it.
var Noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

// FP is the fingerprint of every scene's alert, constant so that a file can contain it.
const FP = "8b2d1f0c3a4e5d67"

// Scene is a lifecycle.State that a person can write and read in a file. By default a repair is
// due: node n1 of ten is not Ready, its alert has been firing for ten minutes, and both
// Alertmanagers report it. Nothing forbids a repair, and the mode is enforce.
type Scene struct {
	Policy  Policy   `json:"policy"`
	Limits  Limits   `json:"limits"`
	Windows []string `json:"windows"`
	// The remediations that this installation can carry out. The default is reboot.
	Provided []string `json:"provided"`
	// The providers of machines, by name, with the scheme of their provider IDs. The default is one
	// provider for all nodes.
	Providers map[string]string `json:"providers"`
	// For all providers, as in remediations.Provider.
	PromisesNone bool `json:"promisesNone"`
	// How many nodes, besides 30% of all, must have the alert for a step that changes the whole
	// cluster. The default is 3.
	MinNodes   int  `json:"minNodes"`
	RequireAll bool `json:"requireAll"`
	// The annotations that announce a repair to other systems.
	Announce []string `json:"announce"`
	Others   []Other  `json:"others"`

	Node    Node                 `json:"node"`
	Alerts  []Alert              `json:"alerts"`
	Record  any                  `json:"record"`
	Leader  any                  `json:"leader"`
	History []remediations.Entry `json:"history"`

	Word  Word   `json:"word"`
	Lease *Lease `json:"lease"`
	Beats Beats  `json:"heartbeats"`
	// The answers of signs that are read outside of the Node, by the signs' names as in
	// Policy.Witness.
	Read map[string]Testimony `json:"read"`
	Call *lifecycle.Call      `json:"call"`
	// The provider's answer about the machine a moment ago. By default nothing forbids a reboot.
	Survey *Survey `json:"survey"`
	// Replacement is the provider's answer about the machine after the step. Pods is the cluster's
	// answer about the restarted pods. By default neither was asked.
	Replacement *Replacement `json:"replacement"`
	Pods        *Pods        `json:"pods"`
	// Why the cache of Nodes cannot be trusted. Empty means that it can.
	Behind string `json:"behind"`
	// Why the API server refuses Drydock's own keys on all Nodes. Empty means that it writes them.
	Denied string `json:"denied"`
	// WellFor is how long the node has been observed as healthy. WatchdogAge is the age of the last
	// Watchdog alert before that.
	WellFor     string `json:"wellFor"`
	WatchdogAge string `json:"heard"`
	Ledger      Ledger `json:"ledger"`
	Fleet       Fleet  `json:"fleet"`
}

type Survey struct {
	Never     bool                `json:"never"`
	Step      string              `json:"step"`
	Asked     string              `json:"asked"` // how long ago
	Trouble   string              `json:"trouble"`
	Fleetwide bool                `json:"fleetwide"`
	Unreached bool                `json:"unreached"`
	Out       string              `json:"out"` // for how long the whole provider has been unreached
	Again     string              `json:"again"`
	Before    remediations.Before `json:"before"`
	Evidence  string              `json:"evidence"`
}

func (v *Survey) survey() *remediations.Survey {
	switch {
	case v == nil:
		return &remediations.Survey{Step: remediations.StepOn{Name: "reboot"}, At: Ago("1s", "")}
	case v.Never:
		return nil
	}
	return &remediations.Survey{Step: v.step(), At: Ago(v.Asked, "1s"), Trouble: v.Trouble, Fleetwide: v.Fleetwide, Unreached: v.Unreached, OutSince: v.outSince(), Again: Span(v.Again, "5m"), Before: v.Before, Evidence: v.Evidence}
}

func (v *Survey) outSince() time.Time {
	if v.Out == "" {
		return time.Time{}
	}
	return Ago(v.Out, "")
}

// Some remediations also have a unit or DaemonSet.
func (v *Survey) step() remediations.StepOn {
	name, on, _ := strings.Cut(v.Step, " ")
	if name == "rollout-restart" {
		return remediations.StepOn{Name: name, DaemonSet: on}
	}
	return remediations.StepOn{Name: name, Unit: on}
}

type Pods struct {
	Asked   string `json:"asked"` // how long ago
	Intent  string `json:"intent"`
	Missing string `json:"missing"`
}

type Replacement struct {
	Asked string `json:"asked"` // how long ago
	// The intent that the question was about. The default is the intent on record.
	Intent      string `json:"intent"`
	MachineGone bool   `json:"machineGone"`
	NoneNeeded  bool   `json:"noneNeeded"`
	Missing     string `json:"missing"`
	Blocked     string `json:"blocked"`
	// The provider IDs of the new machines. The default is that of the scene's own node.
	Successors []string `json:"successors"`
}

type Testimony struct {
	Answer signs.Answer `json:"answer"`
	Asked  string       `json:"asked"` // how long ago
}

type Policy struct {
	Gone           bool              `json:"gone"`
	Mode           remediations.Mode `json:"mode"`
	For            string            `json:"for"`
	ProofFor       string            `json:"proofFor"`
	Cooldown       string            `json:"cooldown"`
	RelapseWindow  string            `json:"relapseWindow"`
	Plan           []string          `json:"plan"` // "reboot" for each step; "reboot 2" for two attempts; "restart-unit=x.service"
	RepairCordoned bool              `json:"repairCordoned"`
	Approval       bool              `json:"approval"`
	OnExhausted    string            `json:"onExhausted"`
	// Selects Nodes that have this label.
	NodeSelector string `json:"nodeSelector"`
	// "unwritten", "none", or signs, separated by commas: "ready", "lease", "gpus", "provider",
	// "DiskPressure=True", "pod kube-system/kube-proxy". The default is ready.
	Witness string `json:"witness"`
}

type Other struct {
	Name string            `json:"name"`
	Mode remediations.Mode `json:"mode"`
	Plan []string          `json:"plan"`
}

type Limits struct {
	RepairsPerNode int `json:"repairsPerNode"`
	Concurrent     int `json:"concurrent"`
}

type Node struct {
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	Ready       string            `json:"ready"` // True, False, Unknown, none
	ReadyFor    string            `json:"readyFor"`
	BootID      *string           `json:"bootID"`
	// Conditions are further conditions of the Node, by type. Allocatable is the node's
	// status.allocatable.
	Conditions   map[string]string `json:"conditions"`
	Allocatable  map[string]string `json:"allocatable"`
	Age          string            `json:"age"`
	Cordoned     bool              `json:"cordoned"`
	Taints       []string          `json:"taints"`
	Deleting     bool              `json:"deleting"`
	ControlPlane bool              `json:"controlPlane"`
}

type Alert struct {
	Fingerprint string `json:"fingerprint"`
	Policy      string `json:"policy"`
	Status      string `json:"status"`
	Received    string `json:"received"` // how long ago
	Started     string `json:"started"`  // how long ago
	// Each Alertmanager that answers has the alert as active. For the scene's main alert (FP),
	// Replica.Alert decides this.
	Active bool `json:"active"`
}

type Word struct {
	Never          bool      `json:"never"`
	Age            string    `json:"age"`
	Asked          string    `json:"asked"` // how long ago the node requested a query of Alertmanager; "never"
	WatchdogMisses int       `json:"watchdogMisses"`
	Sick           int       `json:"sick"` // how many of the other nodes have the alert, too
	Replicas       []Replica `json:"replicas"`
}

type Replica struct {
	Err        string `json:"err"`
	NoWatchdog bool   `json:"noWatchdog"`
	BlindBy    string `json:"blindBy"`
	// The alert's state in this replica: active, silenced, inhibited, muted, unprocessed, or
	// absent.
	Alert string `json:"alert"`
	// An entry is "id" or, if the replica also returned the silence itself, "id author comment
	// end".
	Silences []string `json:"silences"`
	// How long ago the alert and the Watchdog were last received.
	Sent         string `json:"sent"`
	WatchdogSent string `json:"watchdogSent"`
}

// Beats describes the leases of all ten nodes.
type Beats struct {
	Read  string `json:"read"` // how long ago; "never"
	Stale int    `json:"stale"`
}

type Lease struct {
	Read    string `json:"read"`    // how long ago
	Renewed string `json:"renewed"` // how long ago
	Unread  string `json:"unread"`  // why it could not be read
}

type Ledger struct {
	// Unreadable is why the ledger could not be read just now. Malformed is why its content is not
	// valid.
	Unreadable string `json:"unreadable"`
	Malformed  string `json:"malformed"`
	// How long ago earlier repairs on the machine began.
	Begun []string `json:"begun"`
	// The ID of a repair that began on the machine a moment ago.
	Mine  string        `json:"mine"`
	Slots []ledger.Slot `json:"slots"`
	// The repairs that changed the whole cluster.
	Wide []ledger.Begun `json:"wide"`
	// Breakers are the breakers' states, by scope. Exhausted counts the repairs in a row that ran
	// out of steps, by policy.
	Breakers  map[string]ledger.Breaker `json:"breakers"`
	Exhausted map[string]int            `json:"exhausted"`
	Stopped   map[string]string         `json:"stopped"`
	// How much longer the ledger holds repairs because the API server's store went back to an older
	// state.
	WentBack string          `json:"wentBack"`
	Orphans  []ledger.Orphan `json:"orphans"`
	// Cures are the earlier cures of the scene's machine. Unseen are the times during which the
	// view of alerts or nodes could not be trusted.
	Cures  []ledger.Cure `json:"cures"`
	Unseen []ledger.Span `json:"unseen"`
	// How long break-glass has been set on the node.
	BreakGlassFor string `json:"breakGlassFor"`
	// The reason of the break-glass that the ledger knows. The default is the reason on the node.
	BreakGlassWhy string `json:"breakGlassWhy"`
}

type Fleet struct {
	// About the nine other nodes: how many are not Ready, have a repair in flight, are
	// control-plane nodes, and are control-plane nodes that are not Ready.
	Unhealthy        int `json:"unhealthy"`
	InFlight         int `json:"inFlight"`
	ControlPlane     int `json:"controlPlane"`
	ControlPlaneDown int `json:"controlPlaneDown"`
	// Common is how many of the nine other nodes got the same alert at the same time. Tried is the
	// phase of a repair of the last of them by the scene's policy.
	Common int                `json:"common"`
	Tried  remediations.Phase `json:"tried"`
}

var NowPattern = regexp.MustCompile(`<now([+-][0-9a-z]+)?>`)
