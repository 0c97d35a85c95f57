package inspect

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/internal/config"
)

const (
	// installedBy selects the objects of Drydock's chart. configKey is in the chart's ConfigMap.
	installedBy = "app.kubernetes.io/name=drydock"
	configKey   = "drydock.yaml"

	giveConfig = "; give it with --config FILE"
)

// configuration reads the file or, without one, the ConfigMap of Drydock's chart. An empty
// namespace means all. If there are several installations, or the user may not list all namespaces,
// it reads the ConfigMap in the namespace beside, where the ledger is. unseen says why it could not
// be read. It skips files that the configuration names, because they are in Drydock's container.
func (r *Reader) configuration(ctx context.Context, file, namespace, beside string) (cfg *config.Config, unseen string, err error) {
	o := config.Options{SkipFiles: true}
	if file != "" {
		cfg, _, err = config.Load(file, o)
		return cfg, "", err
	}
	list, err := r.ConfigMaps(namespace).List(ctx, metav1.ListOptions{LabelSelector: installedBy})
	switch {
	case apierrors.IsForbidden(err) && namespace == "":
		return r.configuration(ctx, file, beside, beside)
	case apierrors.IsForbidden(err):
		return nil, fmt.Sprintf("Drydock's configuration: %v%s", err, giveConfig), nil
	case err != nil:
		return nil, "", Asking(err, "listing ConfigMaps to find Drydock's configuration", "")
	}
	var found []string
	var text string
	for _, cm := range list.Items {
		if data, ok := cm.Data[configKey]; ok {
			found, text = append(found, cm.Namespace+"/"+cm.Name), data
		}
	}
	if len(found) > 1 && namespace != beside {
		return r.configuration(ctx, file, beside, beside) // several installations: use the one in the ledger's namespace
	}
	switch len(found) {
	case 0:
		return nil, "Drydock's configuration: no ConfigMap of Drydock's chart has the key " + configKey + giveConfig, nil
	case 1:
	default:
		return nil, fmt.Sprintf("Drydock's configuration: there are several, %s; give the namespace of one with -n", strings.Join(found, " and ")), nil
	}
	cfg, _, err = config.Read(strings.NewReader(text), o)
	if err != nil {
		return nil, fmt.Sprintf("Drydock's configuration: ConfigMap %s cannot be used, perhaps because this plugin is of another version: %v", found[0], err), nil
	}
	return cfg, "", nil
}

// AsksForVerbs reports whether the admission webhook requires RBAC verbs on repairs.drydock.dev. It
// returns true, the default, if the configuration cannot be read.
func (r *Reader) AsksForVerbs(ctx context.Context) bool {
	cfg, _, err := r.configuration(ctx, "", r.Namespace, LedgerNamespace)
	return err != nil || cfg == nil || cfg.Webhook == nil || cfg.Webhook.Rights
}
