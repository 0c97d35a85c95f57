// Package backtest computes what Drydock would have done in a period that Prometheus has recorded.
// It feeds the recorded Nodes and alerts to the live engine (remediations/engine), through ports in
// memory and with a simulated clock. It makes no decisions itself.
//
// It is unknown what effect a repair would have had, so the past is replayed twice. In the replay
// "as it went", a step is accepted and does nothing. In the replay "as if each step had cured", a
// step cures its node after its usual time: see [Cures].
package backtest
