package signs

import (
	"fmt"
	"regexp"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/internal/text"
)

// Texts select a condition by its reason and its message. Nil selects every condition. A condition
// that is not selected is missing data: it shows neither a fault nor a cure.
type Texts struct {
	Reason, ReasonNot, Message, MessageNot *regexp.Regexp
}

// Why the condition is not selected, or "".
func (t *Texts) against(c corev1.NodeCondition) string {
	if t == nil {
		return ""
	}
	for _, one := range []struct {
		key, value string
		wanted     bool
		expr       *regexp.Regexp
	}{
		{"reason", c.Reason, true, t.Reason}, {"reasonNot", c.Reason, false, t.ReasonNot},
		{"message", c.Message, true, t.Message}, {"messageNot", c.Message, false, t.MessageNot},
	} {
		if one.expr != nil && one.expr.MatchString(one.value) != one.wanted {
			return fmt.Sprintf("the policy's %s does not select this condition: %q", one.key, text.Line(one.value, 200))
		}
	}
	return ""
}
