package config

import (
	"testing"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations/admission"
)

func TestWebhook(t *testing.T) {
	c, _ := mustLoad(t, base)
	require.Nil(t, c.Webhook, "absent: no admission server")

	c, _ = mustLoad(t, base+"webhook: {}\n")
	require.Equal(t, &Webhook{
		Listen: ":9443", CertDir: "/var/run/drydock/certs", Rotate: true, DNSNames: []string{"drydock-webhook.drydock.svc"},
		Secret: ObjectName{"drydock", "drydock-webhook"}, Configuration: "drydock", Rights: true,
		Exempt: admission.Exemption{Users: []string{}, Groups: []string{}}, Drivers: admission.ShippedDrivers(),
	}, c.Webhook)

	c, _ = mustLoad(t, base+"webhook: {drivers: {nvidia-gpu-operator: [u], amd-gpu-operator: [], mine: [v]}}\n")
	require.Equal(t, admission.Drivers{
		"nvidia-gpu-operator": {"u"}, "amd-gpu-operator": {}, "mine": {"v"}, "nvidia-network-operator": admission.ShippedDrivers()["nvidia-network-operator"],
	}, c.Webhook.Drivers)

	c, warnings := mustLoad(t, base+`webhook: {certificates: mounted, evictions: true, rights: false, exempt: {users: [u], groups: [g, "system:serviceaccounts"]}}`+"\n")
	require.False(t, c.Webhook.Rotate)
	require.True(t, c.Webhook.Evictions)
	require.False(t, c.Webhook.Rights)
	require.Equal(t, admission.Exemption{Users: []string{"u"}, Groups: []string{"g", "system:serviceaccounts"}}, c.Webhook.Exempt)
	require.Contains(t, lines(warnings), "webhook.exempt.groups[1]: the group system:serviceaccounts contains nearly every user")
	require.NotContains(t, lines(warnings), "groups[0]")
}
