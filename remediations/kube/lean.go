package kube

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
)

// LeanNode is a Node that is decoded from protobuf without its images and managed fields, which
// would be most of the work of a watch of Nodes. LeanTransform converts it to a Node.
type LeanNode struct{ corev1.Node }

// LeanNodeList is a list of LeanNodes.
type LeanNodeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []LeanNode `json:"items"`
}

// Field numbers of k8s.io/api/core/v1/generated.proto and
// k8s.io/apimachinery/pkg/apis/meta/v1/generated.proto. The number of a protobuf field never
// changes.
const (
	listMetadata, listItems = 1, 2 // of NodeList
	metadata, status        = 1, 3 // of Node
	managedFields           = 17   // of ObjectMeta
	images                  = 8    // of NodeStatus
)

// LeanScheme returns a scheme that decodes Nodes as LeanNodes and knows nothing else.
func LeanScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	s.AddKnownTypeWithName(corev1.SchemeGroupVersion.WithKind("Node"), &LeanNode{})
	s.AddKnownTypeWithName(corev1.SchemeGroupVersion.WithKind("NodeList"), &LeanNodeList{})
	metav1.AddToGroupVersion(s, corev1.SchemeGroupVersion)
	return s
}

// LeanTransform returns the informer's transform function, which converts each LeanNode to a
// trimmed Node. keep is for Trim.
func LeanTransform(keep ...string) cache.TransformFunc {
	return func(o any) (any, error) {
		if n, ok := o.(*LeanNode); ok {
			return Trim(&n.Node, keep...), nil
		}
		return o, nil
	}
}

// DeepCopyObject implements runtime.Object.
func (n *LeanNode) DeepCopyObject() runtime.Object {
	out := &LeanNode{}
	n.DeepCopyInto(&out.Node)
	return out
}

// Unmarshal decodes the Node. The protobuf serializer calls it.
func (n *LeanNode) Unmarshal(data []byte) error {
	lean := make([]byte, 0, len(data)/2)
	err := eachField(data, func(number protowire.Number, field, message []byte) error {
		if number == metadata {
			return without(managedFields, number, message, &lean)
		}
		if number == status {
			return without(images, number, message, &lean)
		}
		lean = append(lean, field...)
		return nil
	})
	if err != nil {
		return fmt.Errorf("reading a Node: %w", err)
	}
	return n.Node.Unmarshal(lean)
}

// The function without copies one encoded field to out, apart from its inner field with the number
// left. number and message are the copied field's number and content.
func without(left, number protowire.Number, message []byte, out *[]byte) error {
	kept := 0
	if err := eachField(message, func(n protowire.Number, field, _ []byte) error {
		if n != left {
			kept += len(field)
		}
		return nil
	}); err != nil {
		return err
	}
	*out = protowire.AppendVarint(protowire.AppendTag(*out, number, protowire.BytesType), uint64(kept))
	return eachField(message, func(n protowire.Number, field, _ []byte) error {
		if n != left {
			*out = append(*out, field...)
		}
		return nil
	})
}

// For each field, take gets the whole encoded field and, if it is of the type bytes, its content
// (held).
func eachField(message []byte, take func(number protowire.Number, field, held []byte) error) error {
	for len(message) > 0 {
		number, kind, tag := protowire.ConsumeTag(message)
		if tag < 0 {
			return protowire.ParseError(tag)
		}
		size := protowire.ConsumeFieldValue(number, kind, message[tag:])
		if size < 0 {
			return protowire.ParseError(size)
		}
		var held []byte
		if kind == protowire.BytesType {
			held, _ = protowire.ConsumeBytes(message[tag:])
		}
		if err := take(number, message[:tag+size], held); err != nil {
			return err
		}
		message = message[tag+size:]
	}
	return nil
}

// DeepCopyObject implements runtime.Object.
func (l *LeanNodeList) DeepCopyObject() runtime.Object {
	out := &LeanNodeList{TypeMeta: l.TypeMeta, Items: make([]LeanNode, len(l.Items))}
	l.DeepCopyInto(&out.ListMeta)
	for i := range l.Items {
		l.Items[i].DeepCopyInto(&out.Items[i].Node)
	}
	return out
}

// Reset empties the list. The protobuf serializer calls it.
func (l *LeanNodeList) Reset() { *l = LeanNodeList{} }

// Unmarshal decodes the list. The protobuf serializer calls it.
func (l *LeanNodeList) Unmarshal(data []byte) error {
	return eachField(data, func(number protowire.Number, _, message []byte) error {
		if number == listMetadata {
			return l.ListMeta.Unmarshal(message)
		}
		if number == listItems {
			l.Items = append(l.Items, LeanNode{})
			return l.Items[len(l.Items)-1].Unmarshal(message)
		}
		return nil
	})
}
