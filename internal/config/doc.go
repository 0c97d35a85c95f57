// Package config reads Drydock's configuration: one YAML document, checked strictly and as a whole.
//
// Reading runs in steps, and a later step goes on with whatever an earlier one could use, so that every fault is
// reported at once and with its line: parse into YAML nodes (document.go), fill in defaults out of the schema
// (schema.go), validate against the schema (validate.go), decode (raw.go), check what a schema cannot say and compile
// into the types that the program runs on (build*.go, policies.go). The schema is the only place of defaults, and a
// value that is wrong never becomes one.
package config

//go:generate go run ./gendocs ../..
