// Package words holds how Drydock speaks: plain words, for readers whose first language is not
// English.
package words
