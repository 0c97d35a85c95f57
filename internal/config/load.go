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
	// Capabilities has, for each remediation, why this installation cannot carry it out, or "". If it
	// is nil, the function Capabilities computes it from the configuration.
	Capabilities map[string]string
	// Registry has additional remediations that plans may use.
	Registry remediations.Registry
}

// Load reads and checks the configuration in the file. If it is usable, the returned faults are
// warnings. If not, the error is a Faults. File names in it are relative to its folder.
func Load(path string, o Options) (*Config, []Fault, error) {
	data, err := read(path)
	if err != nil {
		return nil, nil, Faults{{File: path, Line: 1, Path: documentPath, Message: "cannot be read: " + cause(err)}}
	}
	return load(path, data, o)
}

// stdin is the file name in faults of a configuration that Read reads.
const stdin = "stdin"

// Read is like Load, but reads the configuration from a reader. File names in the configuration are
// relative to the working directory.
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

// read reads one byte more than the limit, so that the caller notices a file that is too large.
func read(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return io.ReadAll(io.LimitReader(f, maxFileBytes+1))
}

// cause leaves out the file's name, because the message already has it.
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
		return nil, nil, Faults{{File: name, Line: 1, Path: documentPath, Message: "is a values file of the Helm chart and not a configuration; " +
			"helm install and helm upgrade check it. To check it here, write the drydock.yaml of the ConfigMap that helm template prints to a file"}}
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
