package civosim

import (
	"fmt"
	"net/http"
	"slices"
)

// Each handler runs under mu, and only for a caller that authorize let through.

type instanceJSON struct {
	ID        string   `json:"id"`
	Hostname  string   `json:"hostname"`
	Status    string   `json:"status"`
	Region    string   `json:"region"`
	CreatedAt string   `json:"created_at"`
	Tags      []string `json:"tags"`
}

func (s *Server) asJSON(instances []Instance) []instanceJSON {
	out := make([]instanceJSON, 0, len(instances))
	for _, in := range instances {
		out = append(out, instanceJSON{
			ID: in.ID, Hostname: in.Hostname, Status: in.Status, Region: s.o.Region,
			CreatedAt: "2026-01-02T03:04:05Z", Tags: []string{"civo-kubernetes"},
		})
	}
	return out
}

func (s *Server) listInstances(_ *http.Request, _ requestBody, fault Fault) reply {
	all := slices.Clone(s.instances)
	if fault.list != nil {
		all = fault.list(all)
	}
	return reply{status: http.StatusOK, body: s.asJSON(all)}
}

func (s *Server) getInstance(r *http.Request, _ requestBody, _ Fault) reply {
	in, found := s.find(func(in Instance) bool { return in.ID == r.PathValue("instance") })
	if !found {
		return noInstance()
	}
	return reply{status: http.StatusOK, body: s.asJSON([]Instance{in})[0]}
}

func (s *Server) rebootInstance(verb string) handler {
	return func(r *http.Request, _ requestBody, _ Fault) reply {
		in, found := s.find(func(in Instance) bool { return in.ID == r.PathValue("instance") })
		if !found {
			return noInstance()
		}
		s.reboot(in)
		return success(verb + " " + in.ID)
	}
}

func (s *Server) recycle(_ *http.Request, body requestBody, _ Fault) reply {
	old, found := s.find(func(in Instance) bool { return in.Hostname == body.Hostname })
	if !found {
		return failure(http.StatusNotFound, "database_kubernetes_node_not_found", "Failed to find the node within the internal database")
	}
	s.remove(old)
	rebuilt := s.build(s.o.Rename(old), old.Pool)
	return success(fmt.Sprintf("recycle %s as %s", old.ID, rebuilt.ID))
}

type poolJSON struct {
	ID            string         `json:"id"`
	Count         int            `json:"count"`
	Size          string         `json:"size"`
	InstanceNames []string       `json:"instance_names"`
	Instances     []instanceJSON `json:"instances"`
}

func (s *Server) members(pool string) []Instance {
	return slices.DeleteFunc(slices.Clone(s.instances), func(in Instance) bool { return in.Pool != pool })
}

func (s *Server) poolAsJSON(pool string) poolJSON {
	members := s.members(pool)
	out := poolJSON{ID: pool, Count: len(members), Size: "g4s.kube.medium", InstanceNames: []string{}, Instances: s.asJSON(members)}
	for _, in := range members {
		out.InstanceNames = append(out.InstanceNames, in.Hostname)
	}
	return out
}

func (s *Server) listPools(*http.Request, requestBody, Fault) reply {
	out := []poolJSON{}
	for _, pool := range s.pools {
		out = append(out, s.poolAsJSON(pool))
	}
	return reply{status: http.StatusOK, body: out}
}

func (s *Server) getPool(r *http.Request, _ requestBody, _ Fault) reply {
	if !slices.Contains(s.pools, r.PathValue("pool")) {
		return noPool()
	}
	return reply{status: http.StatusOK, body: s.poolAsJSON(r.PathValue("pool"))}
}

// updatePool scales a pool: upwards by building, downwards by deleting the
// newest first.
func (s *Server) updatePool(r *http.Request, body requestBody, _ Fault) reply {
	pool := r.PathValue("pool")
	if !slices.Contains(s.pools, pool) {
		return noPool()
	}
	members := s.members(pool)
	answer := reply{status: http.StatusOK}
	if body.Count != nil && *body.Count != len(members) {
		if *body.Count < 0 || *body.Count > len(members)+100 {
			return failure(http.StatusBadRequest, "parameter_value_missing", "The count is out of range")
		}
		for i := len(members) - 1; i >= *body.Count; i-- {
			s.remove(members[i])
		}
		for range *body.Count - len(members) {
			s.build(pool+"-"+randomID()[:8], pool)
		}
		answer.done = fmt.Sprintf("scale %s from %d to %d", pool, len(members), *body.Count)
	}
	answer.body = s.poolAsJSON(pool)
	return answer
}

// deletePoolInstance is a scale-down: nothing is built in its place.
func (s *Server) deletePoolInstance(r *http.Request, _ requestBody, _ Fault) reply {
	pool := r.PathValue("pool")
	if !slices.Contains(s.pools, pool) {
		return noPool()
	}
	in, found := s.find(func(in Instance) bool { return in.ID == r.PathValue("instance") && in.Pool == pool })
	if !found {
		return failure(http.StatusNotFound, "database_cluster_pool_instance_not_found", "Failed to find the instance within the pool")
	}
	s.remove(in)
	return success("delete " + in.ID)
}

func noInstance() reply {
	return failure(http.StatusNotFound, "database_instance_find", "Failed to find the instance within the internal database")
}

func noPool() reply {
	return failure(http.StatusNotFound, "database_cluster_pool_not_found", "Failed to find the pool within the internal database")
}
