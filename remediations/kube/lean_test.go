package kube

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
)

// fullNode returns a Node with a value in each field that a decision uses, and in the fields beside
// those that are left out.
func fullNode() *corev1.Node {
	n := heavyNode()
	for i := range n.ManagedFields {
		n.ManagedFields[i].FieldsV1 = metav1.NewFieldsV1(`{"f:status":{}}`)
	}
	n.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}
	n.ResourceVersion, n.CreationTimestamp, n.Finalizers = "7", metav1.NewTime(time.Unix(1700000000, 0)), []string{"example.com/f"}
	n.Spec = corev1.NodeSpec{ProviderID: "civo://m1", Unschedulable: true, PodCIDR: "10.0.0.0/24", Taints: []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectNoSchedule}}}
	n.Status.VolumesInUse = []corev1.UniqueVolumeName{"v"}
	n.Status.NodeInfo = corev1.NodeSystemInfo{BootID: "b", SystemUUID: "s"}
	return n
}

// TestALeanNodeIsTheNodeButForWhatIsLeftOut, in protobuf and in JSON, in an event of a watch and in
// a list.
func TestALeanNodeIsTheNodeButForWhatIsLeftOut(t *testing.T) {
	whole := fullNode()
	lean := whole.DeepCopy()
	lean.Status.Images, lean.ManagedFields = nil, nil
	encoder := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
	decoder := serializer.NewCodecFactory(LeanScheme()).WithoutConversion()
	decode := func(o runtime.Object, media string) runtime.Object {
		var data []byte
		var err error
		if media == runtime.ContentTypeJSON {
			data, err = json.Marshal(o)
		} else {
			data, err = runtime.Encode(encoder, o)
		}
		require.NoError(t, err)
		info, ok := runtime.SerializerInfoForMediaType(decoder.SupportedMediaTypes(), media)
		require.True(t, ok)
		out, err := runtime.Decode(info.Serializer, data)
		require.NoError(t, err)
		return out
	}
	one, ok := decode(whole, runtime.ContentTypeProtobuf).(*LeanNode)
	require.True(t, ok)
	require.Equal(t, lean.ObjectMeta, one.ObjectMeta)
	require.Equal(t, lean.Spec, one.Spec)
	require.Equal(t, lean.Status, one.Status)
	require.Equal(t, one, one.DeepCopyObject())

	list, ok := decode(&corev1.NodeList{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "NodeList"}, ListMeta: metav1.ListMeta{ResourceVersion: "9", Continue: "c"}, Items: []corev1.Node{*whole, *heavyNode()},
	}, runtime.ContentTypeProtobuf).(*LeanNodeList)
	require.True(t, ok)
	require.Equal(t, metav1.ListMeta{ResourceVersion: "9", Continue: "c"}, list.ListMeta)
	require.Len(t, list.Items, 2)
	require.Equal(t, lean.Status, list.Items[0].Status)
	require.Empty(t, list.Items[1].Status.Images)
	require.Equal(t, list, list.DeepCopyObject())

	trim := LeanTransform("network.example.com/setting-3")
	for _, media := range []string{runtime.ContentTypeProtobuf, runtime.ContentTypeJSON} {
		cached, err := trim(decode(whole, media))
		require.NoError(t, err)
		got, ok := cached.(*corev1.Node)
		require.True(t, ok, "%T", cached)
		want := Trim(whole, "network.example.com/setting-3")
		require.True(t, want.CreationTimestamp.Equal(&got.CreationTimestamp))
		got.CreationTimestamp, got.TypeMeta = want.CreationTimestamp, want.TypeMeta
		require.Equal(t, want, got, media)
	}
}

// TestALeanNodeThatIsCutOffIsAnError: a part of a message does not count as the whole.
func TestALeanNodeThatIsCutOffIsAnError(t *testing.T) {
	data, err := fullNode().Marshal()
	require.NoError(t, err)
	require.NoError(t, (&LeanNode{}).Unmarshal(data))
	cut := 0
	for i := 1; i < len(data); i += 7 {
		whole, lean := (&corev1.Node{}).Unmarshal(data[:i]), (&LeanNode{}).Unmarshal(data[:i])
		require.Equal(t, whole == nil, lean == nil, "%d of %d bytes: %v", i, len(data), lean)
		if lean != nil {
			cut++
		}
	}
	require.Positive(t, cut)
}

// BenchmarkDecode measures the cost of decoding each status update of a kubelet.
func BenchmarkDecode(b *testing.B) {
	data, err := fullNode().Marshal()
	require.NoError(b, err)
	for name, read := range map[string]func() error{
		"whole": func() error { return (&corev1.Node{}).Unmarshal(data) },
		"lean":  func() error { return (&LeanNode{}).Unmarshal(data) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				require.NoError(b, read())
			}
		})
	}
}
