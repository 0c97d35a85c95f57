package config

import (
	"errors"
	"io"
	"os"
	"path/filepath"

	"drydock.dev/drydock/remediations"
)

// Options say how a configuration is loaded.
type Options struct {
	// SkipFiles leaves out the look at the files that the configuration names: tokens, keys and certificates.
	SkipFiles bool
	// Capabilities says of each remediation why this installation cannot carry it out; empty: it can.
	// Nil: what Capabilities says of the configuration.
	Capabilities map[string]string
	// Registry has the remediations that a plan may name in addition to those that Drydock ships.
	Registry remediations.Registry
}

// Load reads and checks the configuration in the file. The faults that it returns are warnings: the configuration can
// be used. If it cannot, the error is a Faults. File names in it are relative to the folder that it is in.
func Load(path string, o Options) (*Config, []Fault, error) {
	data, err := read(path)
	if err != nil {
		return nil, nil, Faults{{File: path, Line: 1, Path: documentPath, Message: "cannot be read: " + cause(err)}}
	}
	return load(path, data, o)
}

// stdin is the name of a configuration that comes from no file.
const stdin = "stdin"

// Read is Load of what in holds. File names in it are relative to the working directory.
func Read(in io.Reader, o Options) (*Config, []Fault, error) {
	data, err := io.ReadAll(io.LimitReader(in, maxFileBytes+1))
	if err != nil {
		return nil, nil, Faults{{File: stdin, Line: 1, Path: documentPath, Message: "cannot be read: " + cause(err)}}
	}
	return load(stdin, data, o)
}

// Shipped returns a configuration that holds nothing but the shipped policies, as defaults make them.
func Shipped() *Config {
	root := map[string]any{}
	loadSchema().root.fill(root, root)
	b := &builder{skipFiles: true}
	b.mergePolicies(nil, nil, root)
	return b.out()
}

// read reads a file up to one byte beyond the limit, so that what is too large is seen to be.
func read(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return io.ReadAll(io.LimitReader(f, maxFileBytes+1))
}

// cause is the system's word on what is wrong with a file, without the name that the message has already.
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
