// Package real tests package alertmanager against the real Alertmanager, driven
// with the real amtool. It has tests only.
package real
