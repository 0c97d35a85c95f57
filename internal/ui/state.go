package ui

// State is a node's state on a tile. If several apply, the first in the variable states counts.
type State string

const (
	Exhausted State = "exhausted"
	Repairing State = "repairing"
	Paused    State = "paused"
	Held      State = "held"
	Unhealthy State = "unhealthy"
	Cordoned  State = "cordoned"
	Well      State = "well"
)

// Look shows a state. Text and shape say the same as the color in static/style.css, for people who
// do not see colors.
type Look struct {
	State State `json:"state"`
	// Shape differs from that of all other states.
	Shape string `json:"-"`
	// Means is the state's meaning in one sentence, for the legend.
	Means string `json:"means"`
}

// States that need a person come first.
var states = []Look{
	{Exhausted, "✖", "The repair is exhausted: all steps were tried. A person must fix the node."},
	{Repairing, "↻", "A step was issued, and Drydock waits for its proof."},
	{Paused, "‖", "A person holds repairs: by a pause, break-glass or the exclude label."},
	{Held, "◆", "Drydock would repair the node, but a guard holds the repair."},
	{Unhealthy, "▲", "Not Ready, or an alert fires. Drydock has not begun."},
	{Cordoned, "⊘", "A person or another program cordoned the node. Otherwise it is healthy."},
	{Well, "●", "Ready, and no alert fires."},
}

func (s State) look() Look {
	for _, l := range states {
		if l.State == s {
			return l
		}
	}
	return Look{State: s, Shape: "?"}
}
