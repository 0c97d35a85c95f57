// Package webhook is the validating webhook: it keeps people and automation from changing a node while a repair is in
// flight on it. It has no rule of its own: it reads a request, asks admission.Validate, and passes the answer on, with
// the metrics that belong to it. It writes nothing to the API server. What it cannot read, it lets through: like the failurePolicy Ignore of its
// configuration, because an admission server that is at fault must never hold up the cluster. What is too large to be read it
// denies, because whoever can make a Node large must not be able to have its changes go unchecked.
//
// Every replica serves it. The certificate comes from cert-controller, which keeps it in a Secret that is mounted here
// and writes its authority into the ValidatingWebhookConfiguration, or from whoever else fills the folder. Neither the
// lack of a certificate nor that of a configuration ends the process: repairs go on, and /readyz says what is missing.
package webhook
