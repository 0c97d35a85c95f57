package kubeapi

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestADeletionIsShownByThatVeryObjectAlone(t *testing.T) {
	for body, want := range map[string]bool{
		`{"kind":"Status","status":"Success"}`:                                                  true,
		`{"kind":"Status","status":"Failure"}`:                                                  false,
		`{"kind":"Machine","metadata":{"uid":"u1","deletionTimestamp":"2026-11-23T00:00:00Z"}}`: true,
		`{"kind":"Machine","metadata":{"uid":"u1"}}`:                                            false,
		`{"kind":"Machine","metadata":{"uid":"u2","deletionTimestamp":"2026-11-23T00:00:00Z"}}`: false,
		`{"kind":"Node","metadata":{"uid":"u1","deletionTimestamp":"2026-11-23T00:00:00Z"}}`:    false,
		`{"kind":"Machine","metadata":{"uid":"u1","deletionTimestamp":"2026-11-23T00:00:00Z"`:   false,
		`<html>`: false,
		``:       false,
	} {
		require.Equal(t, want, Deleted([]byte(body), "Machine", "u1", &metav1.PartialObjectMetadata{}), body)
	}
	require.Equal(t, metav1.NewUIDPreconditions("u1"), Deletion("machines/x", "u1").Body.(metav1.DeleteOptions).Preconditions)
}
