package install

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAllObjectsAreInTheNamespaceThatIsSet: with namespaceOverride, no object stays in the
// release's namespace. The control: without it, the same objects are there.
func TestAllObjectsAreInTheNamespaceThatIsSet(t *testing.T) {
	for name, values := range variants(t) {
		count := func(override, namespace string) (inside int) {
			values["namespaceOverride"] = override
			manifests := render(t, name, values)
			delete(manifests, "drydock/templates/extraobjects.yaml") // these objects are the user's own
			for _, o := range objects(t, manifests) {
				if o.GetNamespace() == namespace {
					inside++
				}
			}
			return inside
		}
		inside := count("", name)
		require.Positive(t, inside, name)
		require.Equal(t, inside, count("dock", "dock"), name)
		require.Zero(t, count("dock", name), name)
	}
}
