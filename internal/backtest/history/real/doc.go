// Package real tests package history against real servers. It has tests only.
package real
