package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"drydock.dev/drydock/internal/lab"
)

const drydockUser = "system:serviceaccount:" + lab.Namespace + ":" + lab.Namespace

// The API server's audit log, with only Drydock's requests.
type audit struct{ file string }

func newAudit(dir string) (*audit, []string, error) {
	policy := filepath.Join(dir, "audit-policy.yaml")
	text := `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- {level: Metadata, users: ["` + drydockUser + `"]}
- {level: None}
`
	if err := os.WriteFile(policy, []byte(text), 0o600); err != nil {
		return nil, nil, fmt.Errorf("writing the audit policy: %w", err)
	}
	a := &audit{file: filepath.Join(dir, "audit.log")}
	return a, []string{"--audit-policy-file=" + policy, "--audit-log-path=" + a.file, "--audit-log-maxsize=4096"}, nil
}

type call struct {
	Verb      string    `json:"verb"`
	Began     time.Time `json:"requestReceivedTimestamp"`
	Ended     time.Time `json:"stageTimestamp"`
	ObjectRef struct {
		Resource, Namespace, Name, Subresource string
	} `json:"objectRef"`
	ResponseStatus struct{ Code int } `json:"responseStatus"`
}

func (a *audit) mark() int64 {
	info, err := os.Stat(a.file)
	if err != nil {
		return 0
	}
	return info.Size()
}

func (a *audit) since(mark int64) (calls []call, next int64, err error) {
	f, err := os.Open(a.file)
	if err != nil {
		return nil, mark, fmt.Errorf("reading the audit log: %w", err)
	}
	defer func() { _ = f.Close() }()
	if _, err := f.Seek(mark, io.SeekStart); err != nil {
		return nil, mark, fmt.Errorf("reading the audit log: %w", err)
	}
	for r := bufio.NewReaderSize(f, 1<<20); ; {
		line, err := r.ReadBytes('\n')
		if err != nil {
			return calls, mark, nil // the last line is incomplete: read it the next time
		}
		mark += int64(len(line))
		var c call
		if err := json.Unmarshal(line, &c); err != nil {
			return nil, mark, fmt.Errorf("reading the audit log: %w", err)
		}
		calls = append(calls, c)
	}
}

// Events, the leader-election Lease and the LIST of leases are kinds of their own.
func (c call) kind() string {
	what := c.Verb + " " + c.ObjectRef.Resource
	if c.ObjectRef.Subresource != "" {
		what += "/" + c.ObjectRef.Subresource
	}
	if c.ObjectRef.Resource == "leases" && c.ObjectRef.Namespace == lab.Namespace {
		what += " (leader)"
	}
	return what
}

func (c call) apart() bool {
	return c.ObjectRef.Resource == "events" || strings.HasSuffix(c.kind(), "(leader)") ||
		(c.Verb == "list" && c.ObjectRef.Resource == "leases") || c.Verb == "watch"
}

func (c call) write() bool {
	switch c.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return true
	}
	return false
}
