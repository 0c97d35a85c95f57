package civosim

import (
	"fmt"
	"net/http"
	"slices"
	"time"
)

// The simulator calls each handler while it holds mu, and only for an authorized caller.

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
			CreatedAt: s.created[in.ID].UTC().Format(time.RFC3339Nano), Tags: []string{"civo-kubernetes"},
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

// getInstance also returns an instance of another cluster of the account.
func (s *Server) getInstance(r *http.Request, _ requestBody, _ Fault) reply {
	in, found := s.anyOf(r.PathValue("instance"))
	if !found {
		return noInstance()
	}
	return reply{status: http.StatusOK, body: s.asJSON([]Instance{in})[0]}
}

func (s *Server) rebootInstance(op Op, verb string) handler {
	return func(r *http.Request, _ requestBody, _ Fault) reply {
		in, found := s.anyOf(r.PathValue("instance"))
		switch {
		case !found:
			return noInstance()
		case in.Status != "ACTIVE":
			return failure(http.StatusConflict, "instance_state_must_be_active_or_shutoff", "The instance is "+in.Status)
		}
		s.reboot(in, op)
		return success(verb + " " + in.ID)
	}
}

func (s *Server) recycle(_ *http.Request, body requestBody, _ Fault) reply {
	old, found := s.find(func(in Instance) bool { return in.Hostname == body.Hostname && in.Status != "DELETING" })
	if !found {
		return failure(http.StatusNotFound, "database_kubernetes_node_not_found", "Failed to find the node within the internal database")
	}
	return success(fmt.Sprintf("recycle %s as %s", old.ID, s.replace(old).ID))
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

func (s *Server) poolAsJSON(p *pool) poolJSON {
	members := s.members(p.id)
	out := poolJSON{ID: p.id, Count: p.count, Size: "g4s.kube.medium", InstanceNames: []string{}, Instances: s.asJSON(members)}
	for _, in := range members {
		out.InstanceNames = append(out.InstanceNames, in.Hostname)
	}
	return out
}

func (s *Server) listPools(_ *http.Request, _ requestBody, fault Fault) reply {
	out := []poolJSON{}
	for _, p := range s.pools {
		out = append(out, s.poolAsJSON(p))
	}
	if fault.pools != nil {
		out = fault.pools(out)
	}
	return reply{status: http.StatusOK, body: out}
}

func (s *Server) getPool(r *http.Request, _ requestBody, _ Fault) reply {
	p := s.pool(r.PathValue("pool"))
	if p == nil {
		return noPool()
	}
	return reply{status: http.StatusOK, body: s.poolAsJSON(p)}
}

func (s *Server) updatePool(r *http.Request, body requestBody, _ Fault) reply {
	p := s.pool(r.PathValue("pool"))
	if p == nil {
		return noPool()
	}
	members := s.members(p.id)
	answer := reply{status: http.StatusOK}
	if body.Count != nil && (*body.Count != len(members) || *body.Count != p.count) {
		if *body.Count < 0 || *body.Count > len(members)+100 {
			return failure(http.StatusBadRequest, "parameter_value_missing", "The count is out of range")
		}
		for i := len(members) - 1; i >= *body.Count; i-- {
			s.remove(members[i])
		}
		for range *body.Count - len(members) {
			s.build(p.id+"-"+randomID()[:8], p.id)
		}
		answer.done = fmt.Sprintf("scale %s from %d to %d", p.id, p.count, *body.Count)
		p.count = *body.Count
	}
	answer.body = s.poolAsJSON(p)
	return answer
}

func (s *Server) deletePoolInstance(r *http.Request, _ requestBody, _ Fault) reply {
	p := s.pool(r.PathValue("pool"))
	if p == nil {
		return noPool()
	}
	in, found := s.find(func(in Instance) bool { return in.ID == r.PathValue("instance") && in.Pool == p.id })
	if !found {
		return failure(http.StatusNotFound, "database_cluster_pool_instance_not_found", "Failed to find the instance within the pool")
	}
	s.remove(in)
	p.count--
	return success("delete " + in.ID)
}

func noInstance() reply {
	return failure(http.StatusNotFound, "database_instance_find", "Failed to find the instance within the internal database")
}

func noPool() reply {
	return failure(http.StatusNotFound, "database_cluster_pool_not_found", "Failed to find the pool within the internal database")
}
