package sidecarsim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Task is an accepted task, as the volume stores it.
type Task struct {
	ID     string `json:"id"`
	Type   string `json:"type"`
	Status string `json:"status"` // running, completed or failed
}

const (
	MarkReady    = "mark-ready"
	MarkNotReady = "mark-not-ready"
)

// Pods returns the running pods, sorted by their keys.
func (s *Server) Pods() []Pod {
	s.mu.Lock()
	defer s.mu.Unlock()
	var pods []Pod
	for _, key := range slices.Sorted(maps.Keys(s.sidecars)) {
		pods = append(pods, s.sidecars[key].pod)
	}
	return pods
}

// Pod returns the running pod with this key.
func (s *Server) Pod(key string) (Pod, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.sidecars[key]; c != nil {
		return c.pod, true
	}
	return Pod{}, false
}

// Ready reports whether the pod runs and its gate is open.
func (s *Server) Ready(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.sidecars[key]
	return c != nil && c.open
}

// Closed returns the running pods with a closed gate.
func (s *Server) Closed() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Sorted(maps.Keys(s.sidecars)), func(key string) bool { return s.sidecars[key].open })
}

// Open opens a pod's gate without a call, for the beginning of a test.
func (s *Server) Open(key string) error { return s.set(key, true) }

// Restart restarts the sidecar's container: its gate is closed, its pending work is lost, and the
// volume stays.
func (s *Server) Restart(key string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.sidecars[key]
	if c == nil {
		return fmt.Errorf("restarting the sidecar of pod %s: there is none", key)
	}
	c.process++
	c.open = false
	s.announce()
	return nil
}

// RestartOn restarts the sidecars of all pods of a node, like a reboot, and returns their keys.
func (s *Server) RestartOn(node string) []string {
	var keys []string
	for _, p := range s.Pods() {
		if p.Node == node && s.Restart(p.Key()) == nil {
			keys = append(keys, p.Key())
		}
	}
	return keys
}

func (s *Server) set(key string, open bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.sidecars[key]
	if c == nil {
		return fmt.Errorf("setting the gate of pod %s: it does not run", key)
	}
	c.open = open
	s.announce()
	return nil
}

// Tasks returns the tasks on the SeiNode's volume, sorted by id.
func (s *Server) Tasks(namespace, seiNode string) []Task {
	s.mu.Lock()
	defer s.mu.Unlock()
	tasks := slices.Collect(maps.Values(s.volumes[namespace+"/"+seiNode]))
	slices.SortFunc(tasks, func(a, b Task) int { return strings.Compare(a.ID, b.ID) })
	return tasks
}

// The caller holds mu.
func (s *Server) volume(p Pod) map[string]Task {
	key := p.Namespace + "/" + p.SeiNode
	if s.volumes[key] == nil {
		s.volumes[key] = map[string]Task{}
	}
	return s.volumes[key]
}
