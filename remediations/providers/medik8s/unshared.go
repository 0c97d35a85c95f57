package medik8s

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Unshared returns a warning if Medik8s' operators use a Lease for each node, but Drydock is not
// configured to take these Leases (shares).
func Unshared(ctx context.Context, client kubernetes.Interface, shares bool) []string {
	if shares {
		return nil
	}
	switch _, err := client.CoreV1().Namespaces().Get(ctx, Namespace, metav1.GetOptions{}); {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return []string{fmt.Sprintf("Drydock could not check whether Medik8s' operators use Leases in the namespace %s: %v", Namespace, err)}
	}
	return []string{fmt.Sprintf("the namespace %s exists: Medik8s' operators take the Lease node-NAME there before they repair a node, but Drydock does not respect or take that Lease; "+
		"write announce: [medik8s] (docs/operate/other-systems.md)", Namespace)}
}
