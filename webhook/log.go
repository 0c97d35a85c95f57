package webhook

import (
	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// incomplete is an error that the rotator logs about a Secret that it has just filled: it still
// checks the copy from before the write.
const rotatorName, incomplete = "cert-rotation", "secret is not well-formed, cannot update webhook configurations"

// WithoutNormalErrors returns a logger for the certificate rotator that writes some expected errors
// as debug lines. At every first start, all replicas write the Secret: one succeeds, and the others
// get a conflict and try again.
func WithoutNormalErrors(log logr.Logger) logr.Logger {
	if log.GetSink() == nil {
		return log
	}
	return log.WithSink(rotatorSink{LogSink: log.GetSink()})
}

type rotatorSink struct {
	logr.LogSink
	rotator bool
}

func (s rotatorSink) Error(err error, message string, fields ...any) {
	if s.rotator && (apierrors.IsConflict(err) || message == incomplete) {
		const detail = 1 // logr's V(1)
		s.Info(detail, message, append(fields, "err", err)...)
		return
	}
	s.LogSink.Error(err, message, fields...)
}

func (s rotatorSink) WithName(name string) logr.LogSink {
	return rotatorSink{s.LogSink.WithName(name), name == rotatorName}
}

func (s rotatorSink) WithValues(fields ...any) logr.LogSink {
	return rotatorSink{s.LogSink.WithValues(fields...), s.rotator}
}
