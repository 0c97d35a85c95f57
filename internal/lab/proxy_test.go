package lab_test

import (
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"drydock.dev/drydock/internal/lab"
)

// throughProxy returns a client that connects through a proxy of its own. It has a service
// account's token and the role cluster-admin.
func throughProxy(t *testing.T, l *lab.Lab) (*lab.Proxy, kubernetes.Interface) {
	t.Helper()
	proxy, err := l.NewProxy()
	require.NoError(t, err)
	path, err := l.ServiceAccountKubeconfig(t.Context(), "drydock", "drydock", proxy.URL())
	require.NoError(t, err)
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "drydock-"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "drydock", Name: "drydock"}},
	}
	_, err = l.Client().RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{})
	require.NoError(t, err)
	config, err := clientcmd.BuildConfigFromFlags("", path)
	require.NoError(t, err)
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	require.Eventually(t, func() bool { // the authorizer learns of a binding by a watch
		_, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		return err == nil
	}, lab.Patience, 20*time.Millisecond)
	return proxy, client
}

func TestAProxyBreaksWhatItsHooksSay(t *testing.T) {
	ctx, l := t.Context(), lab.Shared(t)
	proxy, client := throughProxy(t, l)
	maps := client.CoreV1().ConfigMaps("drydock")
	configMap := func(name string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}

	// A watch delivers its events at once.
	w, err := maps.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=written"})
	require.NoError(t, err)
	defer w.Stop()

	// The write is carried out, but the client never gets the answer.
	proxy.After(func(res *http.Response) lab.Verdict {
		if res.Request.Method == http.MethodPost {
			return lab.Reset
		}
		return lab.Pass
	})
	_, err = maps.Create(ctx, configMap("written"), metav1.CreateOptions{})
	require.Error(t, err)
	require.Nil(t, apiStatus(err))
	select {
	case event := <-w.ResultChan():
		require.Equal(t, "written", event.Object.(*corev1.ConfigMap).Name)
	case <-time.After(lab.Patience):
		require.Fail(t, "the watch does not deliver")
	}
	proxy.After(nil)

	// The write is refused before it is carried out.
	var verdict atomic.Int64
	proxy.Before(func(*http.Request) lab.Verdict { return lab.Verdict(verdict.Load()) })
	verdict.Store(int64(lab.Unavailable))
	_, err = maps.Create(ctx, configMap("refused"), metav1.CreateOptions{})
	require.True(t, apierrors.IsServiceUnavailable(err), "%v", err)
	verdict.Store(int64(lab.Forbidden))
	_, err = maps.Create(ctx, configMap("refused"), metav1.CreateOptions{})
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	verdict.Store(int64(lab.Reset))
	_, err = maps.Create(ctx, configMap("refused"), metav1.CreateOptions{})
	require.Error(t, err)
	require.Nil(t, apiStatus(err))
	proxy.Before(nil)
	_, err = maps.Get(ctx, "refused", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)
}

// apiStatus returns the API server's answer from an error, if there was an answer.
func apiStatus(err error) apierrors.APIStatus {
	var status apierrors.APIStatus
	errors.As(err, &status)
	return status
}
