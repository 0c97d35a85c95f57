package civo

import (
	"errors"
	"fmt"
	"strings"
)

// Reason says why Civo, or this package before it, did nothing.
type Reason string

// The reasons, all of them.
const (
	NotFound       Reason = "NotFound"       // no such instance in the cluster, or no such ID
	Ambiguous      Reason = "Ambiguous"      // more than one instance could be meant
	Unauthorized   Reason = "Unauthorized"   // no usable key, or Civo refuses it
	Quota          Reason = "Quota"          // the account's quota is reached
	Rejected       Reason = "Rejected"       // Civo understood, and said no
	Unreachable    Reason = "Unreachable"    // no connection, or no answer to a question
	BadAnswer      Reason = "BadAnswer"      // an answer to a question that is none
	UnknownCluster Reason = "UnknownCluster" // Civo has no such cluster in the region
	WrongRegion    Reason = "WrongRegion"    // Civo has no such region
	Busy           Reason = "Busy"           // an earlier call was still under way
	Withheld       Reason = "Withheld"       // the caller's mayStill said no
)

// advice says, for each reason, what a person can do.
var advice = map[Reason]string{
	NotFound:       "compare the node's spec.providerID and name with the instances of cluster {cluster} in region {region} at Civo",
	Ambiguous:      "find out at Civo which instance is this node's, and correct the node's spec.providerID or remove the other instance",
	Unauthorized:   "put a valid API key into {key file}",
	Quota:          "raise the account's quota at Civo",
	Rejected:       "look at the instance at Civo",
	Unreachable:    "check the network between Drydock and Civo, and Civo's status",
	BadAnswer:      "check that apiURL is Civo's API and no proxy answers in its place, and Civo's status",
	UnknownCluster: "check clusterID {cluster} and region {region} in Drydock's configuration",
	WrongRegion:    "check region {region} in Drydock's configuration",
	Busy:           "it is tried again when that call is over",
	Withheld:       "whoever leads now decides anew",
}

// RefusedError means that the provider certainly did nothing. Error is one
// sentence for people: the node, what happened and what to do.
type RefusedError struct {
	Reason Reason
	Err    error // the cause; may be nil
	text   string
}

func (e *RefusedError) Error() string { return e.text }

// Unwrap returns the cause, for errors.Is with a context's errors or civogo's.
func (e *RefusedError) Unwrap() error { return e.Err }

// UnknownError means that the provider may or may not have done it. Whoever
// gets one must take it for done until the machine proves otherwise.
type UnknownError struct {
	Err  error // the cause; may be nil
	text string
}

func (e *UnknownError) Error() string { return e.text }

// Unwrap returns the cause, for errors.Is with a context's errors or civogo's.
func (e *UnknownError) Unwrap() error { return e.Err }

// task is what an error is about.
type task struct {
	verb     string
	machine  Machine
	instance string // empty while it is not known
}

func (t task) String() string {
	if t.instance == "" {
		return fmt.Sprintf("%s node %q through Civo", t.verb, t.machine.NodeName)
	}
	return fmt.Sprintf("%s node %q (instance %s) through Civo", t.verb, t.machine.NodeName, t.instance)
}

func (c *Client) refuse(t task, why Reason, cause error, format string, args ...any) error {
	hint := strings.NewReplacer("{cluster}", c.o.ClusterID, "{region}", c.o.Region, "{key file}", c.o.APIKeyFile).Replace(advice[why])
	return &RefusedError{Reason: why, Err: cause, text: fmt.Sprintf("%s: nothing was done: %s%s; %s",
		t, fmt.Sprintf(format, args...), because(cause), hint)}
}

func (c *Client) doubt(t task, cause error, format string, args ...any) error {
	return &UnknownError{Err: cause, text: fmt.Sprintf("%s: it may have been done: %s%s; take it as done and look whether the machine changed",
		t, fmt.Sprintf(format, args...), because(cause))}
}

func because(cause error) string {
	if cause == nil {
		return ""
	}
	return " (" + short(cause.Error()) + ")"
}

// short makes foreign text fit for an event: one line of bounded length.
func short(text string) string {
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r <= ' ' || r == 0x7f }), " ")
	const most = 300
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "..."
	}
	return text
}

// civogoError is civogo's error without the API key, which a page of some proxy
// may repeat, and without the rest of that page.
type civogoError struct {
	text     string
	original error
}

func (e *civogoError) Error() string { return e.text }

// Is lets civogo's sentinels be found, and keeps the original's text in.
func (e *civogoError) Is(target error) bool { return errors.Is(e.original, target) }

// redact makes text that came from outside fit for people to see.
func redact(text, key string) string {
	return short(strings.ReplaceAll(text, key, "[API key]"))
}
