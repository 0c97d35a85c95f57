package sidecarsim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Task is one that a sidecar accepted, as its volume remembers it.
type Task struct {
	ID     string `json:"id"`
	Type   string `json:"type"`
	Status string `json:"status"` // running, completed or failed
}

// The types of tasks that the simulator knows.
const (
	MarkReady    = "mark-ready"
	MarkNotReady = "mark-not-ready"
)

// Pods are those that run, sorted by their keys.
func (s *Server) Pods() []Pod {
	s.mu.Lock()
	defer s.mu.Unlock()
	var pods []Pod
	for _, key := range slices.Sorted(maps.Keys(s.sidecars)) {
		pods = append(pods, s.sidecars[key].pod)
	}
	return pods
}

// Pod finds a pod that runs by its key.
func (s *Server) Pod(key string) (Pod, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.sidecars[key]; c != nil {
		return c.pod, true
	}
	return Pod{}, false
}

// Ready says that the pod runs and its gate is open.
func (s *Server) Ready(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.sidecars[key]
	return c != nil && c.open
}

// Closed are the pods that run and whose gate is closed.
func (s *Server) Closed() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Sorted(maps.Keys(s.sidecars)), func(key string) bool { return s.sidecars[key].open })
}

// Open opens a pod's gate without a call, as it is when a test begins.
func (s *Server) Open(key string) error { return s.set(key, true) }

// Restart restarts the container: its gate is closed, what was under way in it
// is forgotten, its volume is as it was.
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

// RestartOn restarts the sidecars of all pods of a node, as its reboot does, and
// returns their keys.
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

// Tasks are those that the SeiNode's volume remembers, sorted by id.
func (s *Server) Tasks(namespace, seiNode string) []Task {
	s.mu.Lock()
	defer s.mu.Unlock()
	tasks := slices.Collect(maps.Values(s.volumes[namespace+"/"+seiNode]))
	slices.SortFunc(tasks, func(a, b Task) int { return strings.Compare(a.ID, b.ID) })
	return tasks
}

// volume is the memory of a pod's tasks, under mu.
func (s *Server) volume(p Pod) map[string]Task {
	key := p.Namespace + "/" + p.SeiNode
	if s.volumes[key] == nil {
		s.volumes[key] = map[string]Task{}
	}
	return s.volumes[key]
}
