package sidecarsim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"
)

// The simulator calls each handler while it holds mu, and only for an authorized caller.

func health(c *sidecar, _ *http.Request, _ *Call, _ Fault) reply {
	if c.open {
		return reply{http.StatusOK, map[string]string{"status": "ready"}}
	}
	return reply{http.StatusServiceUnavailable, map[string]string{"status": "not ready"}}
}

func status(c *sidecar, _ *http.Request, _ *Call, _ Fault) reply {
	word := "Initializing"
	if c.open {
		word = "Ready"
	}
	return reply{http.StatusOK, map[string]string{"status": word}}
}

func metrics(c *sidecar, _ *http.Request, _ *Call, _ Fault) reply {
	open := 0
	if c.open {
		open = 1
	}
	return reply{http.StatusOK, text(fmt.Sprintf("# TYPE sidecar_ready gauge\nsidecar_ready %d\n", open))}
}

// A task whose ID is already on the volume does not run again.
func (s *Server) submit(c *sidecar, _ *http.Request, call *Call, f Fault) reply {
	refuse := func(why string) reply { return reply{http.StatusBadRequest, map[string]string{"error": why}} }
	var body struct {
		ID   *string `json:"id"`
		Type string  `json:"type"`
	}
	decoder := json.NewDecoder(bytes.NewReader([]byte(call.Body)))
	if err := decoder.Decode(&body); err != nil || decoder.More() {
		return refuse("the body is not a JSON object")
	}
	if body.Type != MarkReady && body.Type != MarkNotReady {
		return refuse(fmt.Sprintf("there is no task of type %q", body.Type))
	}
	call.TaskID, call.TaskType = uuid.NewString(), body.Type
	if body.ID != nil {
		if uuid.Validate(*body.ID) != nil {
			return refuse("the id is no UUID")
		}
		call.TaskID = *body.ID
	}
	accepted := reply{http.StatusCreated, map[string]string{"id": call.TaskID}}
	volume := s.volume(c.pod)
	if _, call.Known = volume[call.TaskID]; call.Known {
		return accepted
	}
	task := Task{ID: call.TaskID, Type: body.Type, Status: "completed"}
	switch {
	case f.wedged:
		call.Done = body.Type + ", without effect"
	case f.late > 0:
		call.Done, task.Status = body.Type+", later", "running"
		s.later(c, task, f.late)
	default:
		call.Done = body.Type
		c.open = body.Type == MarkReady
	}
	volume[task.ID] = task
	return accepted
}

// The task is dropped if the sidecar's process has ended by then.
func (s *Server) later(c *sidecar, task Task, by time.Duration) {
	process := c.process
	s.work.Go(func() {
		timer := time.NewTimer(by)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-c.gone.Done():
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		task.Status = "failed"
		if c.process == process {
			task.Status, c.open = "completed", task.Type == MarkReady
		}
		s.volume(c.pod)[task.ID] = task
		s.announce()
	})
}

func (s *Server) getTask(c *sidecar, r *http.Request, _ *Call, _ Fault) reply {
	task, known := s.volume(c.pod)[r.PathValue("id")]
	if !known {
		return reply{http.StatusNotFound, map[string]string{"error": "there is no such task"}}
	}
	return reply{http.StatusOK, task}
}

func (s *Server) listTasks(c *sidecar, _ *http.Request, _ *Call, _ Fault) reply {
	volume := s.volume(c.pod)
	tasks := []Task{}
	for _, id := range slices.Sorted(maps.Keys(volume)) {
		tasks = append(tasks, volume[id])
	}
	return reply{http.StatusOK, tasks}
}
