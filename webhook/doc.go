// Package webhook is the validating webhook: it keeps people and automation from changing a node
// while a repair is in flight on it. It has no rules of its own: it reads a request, calls
// admission.Validate, and returns the answer, with metrics. It writes nothing to the API server.
//
// The webhook allows requests that it cannot read, because a faulty admission server must never
// block the cluster. The failurePolicy Ignore in its configuration has the same reason. It denies
// requests that are too large to read: a client that can make a Node large must not escape the
// checks that way.
//
// Every replica serves admission. The certificate comes from cert-controller, or from any other
// program that writes it into the folder CertDir. cert-controller stores the certificate in a
// Secret that is mounted there, and writes the authority into the ValidatingWebhookConfiguration. A
// missing certificate or configuration does not end the process: repairs continue, and /readyz
// shows what is missing.
package webhook
