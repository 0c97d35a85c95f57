package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/chart/v2/util"
)

// chart works like `helm package` but without the current time.
func (r *release) chart(context.Context) error {
	c, err := loader.LoadDir(filepath.Join(r.root, "charts", "drydock"))
	if err != nil {
		return fmt.Errorf("loading the chart: %w", err)
	}
	version := strings.TrimPrefix(r.version, "v")
	c.Metadata.Version, c.Metadata.AppVersion = version, version
	if c.Metadata.Annotations == nil {
		c.Metadata.Annotations = map[string]string{}
	}
	c.Metadata.Annotations["artifacthub.io/license"] = "Apache-2.0"
	c.Metadata.Annotations["artifacthub.io/images"] = fmt.Sprintf("- name: drydock\n  image: drydock/drydock:%s\n  platforms: [linux/amd64, linux/arm64]\n", version)
	c.Metadata.Annotations["artifacthub.io/prerelease"] = fmt.Sprint(strings.Contains(version, "-"))
	c.ModTime, c.SchemaModTime = r.at, r.at
	for i := range c.Raw {
		c.Raw[i].ModTime = r.at
	}
	for i := range c.Templates {
		c.Templates[i].ModTime = r.at
	}
	for i := range c.Files {
		c.Files[i].ModTime = r.at
	}
	if _, err := util.Save(c, r.out); err != nil {
		return fmt.Errorf("packing the chart: %w", err)
	}
	return nil
}
