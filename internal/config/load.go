package config

import (
	"errors"
	"io"
	"os"
	"path/filepath"

	"drydock.dev/drydock/remediations"
)

// Options configure how a configuration is loaded.
type Options struct {
	// SkipFiles skips the checks of the named files: tokens, keys and certificates.
	SkipFiles bool
	// Capabilities has, for each remediation, why this installation cannot carry it out; empty: it
	// can. Nil: the result of Capabilities for the configuration.
	Capabilities map[string]string
	// Registry has additional remediations that a plan may name.
	Registry remediations.Registry
}

// Load reads and checks the configuration in the file. The returned faults are warnings: the
// configuration is usable. Otherwise the error is a Faults. File names in the configuration are
// relative to its folder.
func Load(path string, o Options) (*Config, []Fault, error) {
	data, err := read(path)
	if err != nil {
		return nil, nil, Faults{{File: path, Line: 1, Path: documentPath, Message: "cannot be read: " + cause(err)}}
	}
	return load(path, data, o)
}

// stdin is the name of a configuration that is not read from a file.
const stdin = "stdin"

// Read is Load for the content of in. File names in it are relative to the working directory.
func Read(in io.Reader, o Options) (*Config, []Fault, error) {
	data, err := io.ReadAll(io.LimitReader(in, maxFileBytes+1))
	if err != nil {
		return nil, nil, Faults{{File: stdin, Line: 1, Path: documentPath, Message: "cannot be read: " + cause(err)}}
	}
	return load(stdin, data, o)
}

// Shipped returns a configuration with only the shipped policies and the defaults.
func Shipped() *Config {
	root := map[string]any{}
	loadSchema().root.fill(root, root)
	b := &builder{skipFiles: true}
	b.mergePolicies(nil, nil, root)
	return b.out()
}

// read reads a file up to one byte over the limit, so that too large a file is noticed.
func read(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return io.ReadAll(io.LimitReader(f, maxFileBytes+1))
}

// cause returns the system's error about a file without the file's name, which the message already
// has.
func cause(err error) string {
	var path *os.PathError
	if errors.As(err, &path) {
		return path.Err.Error()
	}
	return err.Error()
}

func load(name string, data []byte, o Options) (*Config, []Fault, error) {
	d := parse(name, data, "")
	s := schemaFor(o.Registry)
	root, isMapping := d.tree.(map[string]any)
	b := &builder{document: d, dir: filepath.Dir(name), skipFiles: o.SkipFiles}
	b.core.Registry = o.Registry
	var raw rawConfig
	if below, _ := root["config"].(map[string]any); below != nil && root["apiVersion"] == nil {
		return nil, nil, Faults{{File: name, Line: 1, Path: documentPath, Message: "is a file of values for the Helm chart and not a configuration; " +
			"helm install and helm upgrade check it, and here you can check the drydock.yaml of the ConfigMap that helm template renders"}}
	}
	if d.tree != nil {
		if isMapping {
			d.layOverShipped()
			s.root.fill(root, root)
		}
		d.validate(s.validate, s.root)
		d.decode(&raw)
		if isMapping {
			b.build(&raw)
		}
	}
	b.mergePolicies(d, raw.Policies, root)
	sortFaults(d.faults)
	if faults := b.faults(); len(faults) > 0 {
		return nil, nil, Faults(faults)
	}
	c := b.out()
	caps := o.Capabilities
	if caps == nil {
		caps = Capabilities(c)
	}
	c.provide(caps)
	c.nameDaemonSets()
	c.Unused = c.unused(caps)
	return c, c.warnings(d, caps), nil
}
