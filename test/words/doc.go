// Package words checks that Drydock uses plain words, for readers whose first language is not
// English.
package words
