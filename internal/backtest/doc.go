// Package backtest says what Drydock would have done in a time of which Prometheus has the record. It gives the recorded Nodes and
// alerts to the engine that decides live (remediations/engine), through ports in memory and under a simulated clock. Nothing is
// decided here.
//
// What a repair would have done to a node, nobody knows. So the same past is replayed in two ways: as it went, where a step is
// accepted and does nothing, and as if each step had cured its node after its usual time. See [Cures].
package backtest
