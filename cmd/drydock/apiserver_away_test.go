package main

import (
	"net"
	"testing"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"drydock.dev/drydock/internal/config"
)

// TestAnAPIServerThatDoesNotAnswerIsNamed: who starts Drydock against a dead address reads the
// address and what to check, and nothing of how a client finds its resources.
func TestAnAPIServerThatDoesNotAnswerIsNamed(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := "https://" + l.Addr().String()
	require.NoError(t, l.Close())
	cfg, _, err := config.Load(write(t, "c.yaml", "apiVersion: drydock.dev/v1alpha1\nkind: Config\nreceiver: {listen: \"127.0.0.1:0\"}\nalertmanager: {urls: [\"http://127.0.0.1:9\"]}\n"), config.Options{})
	require.NoError(t, err)
	p, err := newProgram(cfg, &rest.Config{Host: address}, "", logr.Discard())
	require.NoError(t, err)
	_, err = p.newManager(t.Context(), prometheus.NewRegistry())
	require.ErrorContains(t, err, "the API server at "+address+" does not answer: ")
	require.ErrorContains(t, err, "connection refused; check ")
	require.NotContains(t, err.Error(), "rest mapping")
	require.NotContains(t, err.Error(), "API group")
}
