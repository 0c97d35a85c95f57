// Package real tests package alertmanager with the real programs Alertmanager and amtool. It has
// only tests.
package real
