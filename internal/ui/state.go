package ui

// State is a node's state on a tile, in one word: the first of States that applies.
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

// Look is how a state looks. Its text and its shape carry the same meaning as its color in
// static/style.css.
type Look struct {
	State State `json:"state"`
	// Shape is one character that no other state has.
	Shape string `json:"-"`
	// Means is one sentence for the legend.
	Means string `json:"means"`
}

// States is the closed list. States that need a person come first.
var States = []Look{
	{Exhausted, "✖", "The repair ran out of steps. A person must look."},
	{Repairing, "↻", "A step was issued, and Drydock waits for its proof."},
	{Paused, "‖", "A person keeps Drydock away: pause, break-glass or the exclude label."},
	{Held, "◆", "Drydock would act, and a guard holds it."},
	{Unhealthy, "▲", "Not Ready, or an alert fires. Drydock has not begun."},
	{Cordoned, "⊘", "A person or program cordoned the node. It is well otherwise."},
	{Well, "●", "Ready, and no alert fires."},
}

// look returns how the state looks.
func (s State) look() Look {
	for _, l := range States {
		if l.State == s {
			return l
		}
	}
	return Look{State: s, Shape: "?"}
}
