package lab

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestASecretThatIsWrittenAnywhereIsFound(t *testing.T) {
	l := New(t, Options{Components: APIServerOnly})
	_, err := l.WriteSecret("key", "a-key-that-nobody-may-see")
	require.NoError(t, err)
	leaks, err := l.Leaks(t.Context())
	require.NoError(t, err)
	require.Empty(t, leaks, "its own file is where it belongs")
	_, err = l.Client().CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "careless"}, Data: map[string]string{"status": "the provider refused a-key-that-nobody-may-see"},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	leaks, err = l.Leaks(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"the secret key is in a ConfigMap"}, leaks)
}
