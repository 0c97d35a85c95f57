// Package config reads and checks Drydock's configuration, which is one YAML document.
//
// Reading has five steps. It parses the YAML (document.go) and adds the defaults of the schema
// (schema.go). It validates the result against the schema (validate.go) and decodes it (raw.go).
// The last step builds the types that the program uses, and makes the checks that a schema cannot
// express (build.go, policies.go). Each step leaves out values with a fault, and the next step
// continues with the rest. So all faults are reported together, each with its line. Only the schema
// has defaults. A wrong value is never replaced by a default.
package config

//go:generate go run ./gendocs ../..
