// Package backtest computes what Drydock would have done in a period that Prometheus has recorded.
// It runs the live engine (remediations/engine) with a simulated clock. The engine reads the
// recorded Nodes and alerts from memory and writes to memory. The package itself makes no repair
// decisions.
//
// It is unknown what effect a repair would have had, so the past is replayed twice. In the replay
// "as it went", a step is accepted and does nothing. In the replay "as if each step had cured", a
// step cures its node after its usual time: see [Cures].
package backtest
