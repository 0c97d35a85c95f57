package main

import (
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

type m = map[string]any

// materials writes the bill of materials in SPDX: the Go modules in each binary.
func (r *release) materials(context.Context) error {
	packages, relations := map[string]m{}, []m{}
	for _, b := range r.built {
		info, err := buildinfo.ReadFile(b.file)
		if err != nil {
			return fmt.Errorf("reading the Go modules in %s: %w", b.file, err)
		}
		sum, err := digest(b.file)
		if err != nil {
			return err
		}
		id := spdxID(b.program, b.platform.os, b.platform.arch)
		packages[id] = m{
			"SPDXID": id, "name": b.program, "versionInfo": r.version, "downloadLocation": "NOASSERTION", "filesAnalyzed": false,
			"packageFileName": filepath.Base(b.file), "checksums": []m{{"algorithm": "SHA256", "checksumValue": sum}},
			"comment": fmt.Sprintf("built for %s with %s from commit %s", b.platform, info.GoVersion, r.commit),
		}
		relations = append(relations, m{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": id})
		for _, d := range info.Deps {
			if d.Replace != nil {
				d = d.Replace
			}
			of := spdxID("module", d.Path, d.Version)
			packages[of] = m{
				"SPDXID": of, "name": d.Path, "versionInfo": d.Version, "downloadLocation": "NOASSERTION", "filesAnalyzed": false,
				"externalRefs": []m{{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": "pkg:golang/" + d.Path + "@" + d.Version}},
			}
			relations = append(relations, m{"spdxElementId": id, "relationshipType": "CONTAINS", "relatedSpdxElement": of})
		}
	}
	var list []m
	for _, id := range sorted(packages) {
		list = append(list, packages[id])
	}
	text, err := json.MarshalIndent(m{
		"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": "drydock-" + r.version,
		"documentNamespace": r.url + "/drydock_" + r.version + ".spdx.json",
		"creationInfo":      m{"created": r.at.Format("2006-01-02T15:04:05Z"), "creators": []string{"Tool: drydock-release"}},
		"packages":          list, "relationships": relations,
	}, "", "  ")
	if err != nil {
		return fmt.Errorf("writing the bill of materials: %w", err)
	}
	return os.WriteFile(r.path("drydock_"+r.version+".spdx.json"), append(text, '\n'), 0o644)
}

// spdxID keeps only the characters that SPDX allows.
func spdxID(parts ...string) string {
	return "SPDXRef-" + strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '-' {
			return c
		}
		return '-'
	}, strings.Join(parts, "-"))
}

// krew writes the plugin's manifest for krew, the package manager of kubectl plugins.
func (r *release) krew(context.Context) error {
	var platforms []m
	for _, b := range r.of("kubectl-drydock") {
		sum, err := digest(r.path(r.archive(b)))
		if err != nil {
			return err
		}
		platforms = append(platforms, m{
			"selector": m{"matchLabels": m{"os": b.platform.os, "arch": b.platform.arch}},
			"uri":      r.url + "/" + r.archive(b), "sha256": sum, "bin": filepath.Base(b.file),
		})
	}
	text, err := yaml.Marshal(m{
		"apiVersion": "krew.googlecontainertools.github.com/v1alpha2", "kind": "Plugin", "metadata": m{"name": "drydock"},
		"spec": m{
			"version": r.version, "platforms": platforms,
			"shortDescription": "Show what Drydock does to the nodes",
			"description":      "Drydock turns Prometheus alerts into safe, verified repairs of nodes. The plugin shows\nwhat Drydock does and why it waits, and passes on people's decisions.\n",
		},
	})
	if err != nil {
		return fmt.Errorf("writing the manifest for krew: %w", err)
	}
	return os.WriteFile(r.path("krew.yaml"), text, 0o644)
}

// checksums writes the format of sha256sum -c. It first removes intermediate files.
func (r *release) checksums(context.Context) error {
	if err := os.RemoveAll(r.path(".build")); err != nil {
		return err
	}
	var lines []string
	if err := r.files(func(name, sum string) { lines = append(lines, sum+"  "+name+"\n") }); err != nil {
		return err
	}
	return os.WriteFile(r.path("SHA256SUMS"), []byte(strings.Join(lines, "")), 0o644)
}

func (r *release) files(each func(name, sum string)) error {
	err := filepath.WalkDir(r.out, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == ".build":
			return filepath.SkipDir
		case d.IsDir():
			return nil
		}
		name, err := filepath.Rel(r.out, path)
		if err != nil {
			return err
		}
		sum, err := digest(path)
		each(filepath.ToSlash(name), sum)
		return err
	})
	if err != nil {
		return fmt.Errorf("computing the checksums of the release: %w", err)
	}
	return nil
}

func digest(file string) (string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), nil
}

func sorted(of map[string]m) (keys []string) {
	for k := range of {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
