// Package config reads Drydock's configuration: one YAML document, checked strictly and as a whole.
//
// Reading runs in steps. Each step continues with whatever the earlier ones could use, so that
// every fault is reported at once and with its line. The steps are: parse into YAML nodes
// (document.go), fill in defaults from the schema (schema.go), validate against the schema
// (validate.go), and decode (raw.go). The last step checks what a schema cannot express, and
// compiles the types that the program uses (build*.go, policies.go). Only the schema has defaults,
// and a wrong value never becomes one.
package config

//go:generate go run ./gendocs ../..
