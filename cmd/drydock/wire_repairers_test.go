package main

import (
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// TestTheLeaderFindsOtherRepairersWhereItMay: what it may list it knows. What it may not list is
// none, without an error; what the API server cannot answer now stays as it was.
func TestTheLeaderFindsOtherRepairersWhereItMay(t *testing.T) {
	client := fake.NewClientset(karpenters("NodeRepair=true"))
	objects := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), served,
		custom("remediation.medik8s.io/v1alpha1", "NodeHealthCheck", "workers", object{}))
	var deployments, checks error
	client.PrependReactor("list", "deployments", func(clienttesting.Action) (bool, runtime.Object, error) { return deployments != nil, nil, deployments })
	objects.PrependReactor("list", "nodehealthchecks", func(clienttesting.Action) (bool, runtime.Object, error) { return checks != nil, nil, checks })
	var o others
	found := func() (names []string) {
		for _, r := range o.found() {
			names = append(names, r.Object)
		}
		return names
	}
	require.Empty(t, found())
	require.NoError(t, o.look(t.Context(), client, objects))
	both := []string{"NodeHealthCheck workers", "Karpenter (Deployment kube-system/karpenter, feature gate NodeRepair)"}
	require.Equal(t, both, found())
	require.Contains(t, o.found()[1].Advice, "with Karpenter 1.15 or later, announce: [karpenter] prevents this")

	checks = apierrors.NewServiceUnavailable("busy")
	require.ErrorContains(t, o.look(t.Context(), client, objects), "NodeHealthChecks of Medik8s: ")
	require.Equal(t, both, found())

	checks, deployments = nil, apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: "deployments"}, "", nil)
	require.NoError(t, o.look(t.Context(), client, objects))
	require.Equal(t, both[:1], found())
}
