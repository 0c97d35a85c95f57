// Package backtest computes what Drydock would have done in a time that Prometheus has recorded. It
// feeds the recorded Nodes and alerts to the live engine (remediations/engine), through ports in
// memory and with a simulated clock. It makes no decisions of its own.
//
// The effect that a repair would have had is unknown. So the past is replayed twice: as it went,
// where a step is accepted and does nothing, and as if each step had cured its node after its usual
// time. See [Cures].
package backtest
