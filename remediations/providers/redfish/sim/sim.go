// Package sim simulates the parts of a Redfish BMC that a reboot uses: service root, sessions,
// Systems, ActionInfo, reset, and task. It behaves like the standard, or like one of two vendors.
// It is an http.Handler without TLS, which the caller must add.
//
// The vendors' behaviour is from public reports and source code. iDRAC lists no GracefulRestart. It
// answers a reset with 204, or with 409 and the message PSU501. It refuses If-Match with 412, and
// has eight sessions. OpenBMC lists its resets in an ActionInfo, answers 204, and shows "On" during
// a ForceRestart.
//
// Two other clients, Debian's redfishtool and python3-sushy, were tested with all three behaviours.
// Both find the System and reset it, with basic authentication and with sessions.
package sim

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// Vendor is the maker whose BMCs the simulator imitates.
type Vendor string

const (
	Standard Vendor = "standard"
	IDRAC    Vendor = "iDRAC"
	OpenBMC  Vendor = "OpenBMC"
)

// System is one machine behind the BMC.
type System struct {
	// ID is the BMC's name for the System, by default the vendor's usual one. Serial must be unique
	// in a test.
	ID, UUID, Serial string
	// Power is the PowerState. The default is On.
	Power string
	// Resets are the reset types that the BMC lists. Nil means the vendor's list. With an empty
	// list (None), the BMC lists no types and supports all.
	Resets []string
	// Target is the path for the reset. Empty means the standard path.
	Target string
}

// None lets a BMC list no reset types.
var None = []string{}

// Options describe a BMC.
type Options struct {
	Vendor             Vendor
	Username, Password string
	Systems            []System
	// ReadOnly means that the account may read, but must not reset.
	NoBasic, ReadOnly bool
	// Sessions is how many sessions may be open. The default is 8.
	Sessions int
	// Reset is called for each reset, before the BMC answers. It may be nil.
	Reset func(s System, kind string)
}

// Done is a reset that the BMC carried out.
type Done struct{ Serial, Kind string }

// BMC is a simulated BMC.
type BMC struct {
	o   Options
	mux *http.ServeMux

	mu       sync.Mutex
	systems  []System
	sessions map[string]string // tokens by session ID
	made     int
	refused  int
	done     []Done
}

// New returns a BMC.
func New(o Options) *BMC {
	if o.Sessions == 0 {
		o.Sessions = 8
	}
	b := &BMC{o: o, mux: http.NewServeMux(), sessions: map[string]string{}}
	b.Set(o.Systems...)
	for pattern, h := range map[string]http.HandlerFunc{
		"GET /redfish":                                               b.versions,
		"GET /redfish/v1/{$}":                                        b.root,
		"GET /redfish/v1":                                            b.root,
		"POST /redfish/v1/SessionService/Sessions":                   b.login,
		"DELETE /redfish/v1/SessionService/Sessions/{id}":            b.known(b.logout),
		"GET /redfish/v1/Systems":                                    b.known(b.list),
		"GET /redfish/v1/Systems/{id}":                               b.known(b.show),
		"GET /redfish/v1/Systems/{id}/ResetActionInfo":               b.known(b.actionInfo),
		"POST /redfish/v1/Systems/{id}/Actions/ComputerSystem.Reset": b.known(b.reset),
		"GET /redfish/v1/TaskService/TaskMonitors/{id}":              b.known(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }),
		"/": b.known(func(w http.ResponseWriter, _ *http.Request) {
			Fail(w, 404, "Base.1.0.ResourceMissingAtURI", "no such resource")
		}),
	} {
		b.mux.HandleFunc(pattern, h)
	}
	return b
}

// ServeHTTP implements http.Handler.
func (b *BMC) ServeHTTP(w http.ResponseWriter, r *http.Request) { b.mux.ServeHTTP(w, r) }

// Set replaces the machines behind the BMC.
func (b *BMC) Set(all ...System) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.systems = slices.Clone(all)
	for i := range b.systems {
		s := &b.systems[i]
		if s.ID == "" {
			s.ID = map[Vendor]string{Standard: "1", IDRAC: "System.Embedded.1", OpenBMC: "system"}[b.o.Vendor]
		}
		if s.Power == "" {
			s.Power = "On"
		}
		if s.Resets == nil {
			s.Resets = map[Vendor][]string{
				Standard: {"On", "ForceOff", "GracefulShutdown", "GracefulRestart", "ForceRestart", "Nmi", "PowerCycle"},
				IDRAC:    {"On", "ForceOff", "ForceRestart", "GracefulShutdown", "PushPowerButton", "Nmi", "PowerCycle"},
				OpenBMC:  {"On", "ForceOff", "ForceOn", "ForceRestart", "GracefulRestart", "GracefulShutdown", "PowerCycle", "Nmi"},
			}[b.o.Vendor]
		}
		if s.Target == "" {
			s.Target = "/redfish/v1/Systems/" + s.ID + "/Actions/ComputerSystem.Reset"
		}
	}
}

// Resets returns the resets that the BMC carried out, in order.
func (b *BMC) Resets() []Done {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.done)
}

// Sessions returns how many sessions are open, how many were made, and how many requests were
// refused for wrong credentials.
func (b *BMC) Sessions() (open, made, refused int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.sessions), b.made, b.refused
}

// Change replaces the options of the running BMC, for example ReadOnly or Password.
func (b *BMC) Change(change func(*Options)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change(&b.o)
}

// Fail writes an error in Redfish's form.
func Fail(w http.ResponseWriter, status int, id, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, Error(id, message))
}

// Error returns the body of a Redfish error.
func Error(id, message string) string {
	body, _ := json.Marshal(map[string]any{"error": map[string]any{
		"code": id, "message": message, "@Message.ExtendedInfo": []any{map[string]any{"MessageId": id, "Message": message}},
	}})
	return string(body)
}

func (b *BMC) answer(w http.ResponseWriter, body map[string]any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("OData-Version", "4.0")
	if etag, ok := body["@odata.etag"].(string); ok {
		w.Header().Set("ETag", etag)
	}
	_ = json.NewEncoder(w).Encode(body)
}

func (b *BMC) known(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		b.mu.Lock()
		defer b.mu.Unlock()
		user, password, basic := r.BasicAuth()
		token := r.Header.Get("X-Auth-Token")
		ok := basic && !b.o.NoBasic && user == b.o.Username && password == b.o.Password
		for _, have := range b.sessions {
			ok = ok || token != "" && token == have
		}
		if !ok {
			b.refused++
			Fail(w, http.StatusUnauthorized, "Base.1.0.NoValidSession", "there is no valid session")
			return
		}
		h(w, r)
	}
}

func (b *BMC) versions(w http.ResponseWriter, _ *http.Request) {
	b.answer(w, map[string]any{"v1": "/redfish/v1/"})
}

func link(path string) map[string]any { return map[string]any{"@odata.id": path} }

func (b *BMC) root(w http.ResponseWriter, _ *http.Request) {
	b.answer(w, map[string]any{
		"@odata.id": "/redfish/v1/", "@odata.type": "#ServiceRoot.v1_15_0.ServiceRoot", "Id": "RootService", "Name": "Root Service", "RedfishVersion": "1.17.0",
		"Systems": link("/redfish/v1/Systems"), "SessionService": link("/redfish/v1/SessionService"),
		"Links": map[string]any{"Sessions": link("/redfish/v1/SessionService/Sessions")},
	})
}

// login answers with iDRAC's error if too many sessions are open.
func (b *BMC) login(w http.ResponseWriter, r *http.Request) {
	var asked struct{ UserName, Password string }
	_ = json.NewDecoder(io.LimitReader(r.Body, 1<<16)).Decode(&asked)
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case asked.UserName != b.o.Username || asked.Password != b.o.Password:
		b.refused++
		Fail(w, http.StatusUnauthorized, "Base.1.0.ResourceAtUriUnauthorized", "the user name or password is wrong")
		return
	case len(b.sessions) >= b.o.Sessions:
		Fail(w, http.StatusServiceUnavailable, "IDRAC.2.8.RAC0218", "the maximum number of user sessions is reached")
		return
	}
	b.made++
	id, token := fmt.Sprint(b.made), rand.Text()
	b.sessions[id] = token
	place := "/redfish/v1/SessionService/Sessions/" + id
	w.Header().Set("X-Auth-Token", token)
	w.Header().Set("Location", place)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(map[string]any{"@odata.id": place, "Id": id, "UserName": asked.UserName})
}

func (b *BMC) logout(w http.ResponseWriter, r *http.Request) {
	delete(b.sessions, r.PathValue("id"))
	w.WriteHeader(http.StatusNoContent)
}

func (b *BMC) list(w http.ResponseWriter, _ *http.Request) {
	members := []any{}
	for _, s := range b.systems {
		members = append(members, link("/redfish/v1/Systems/"+s.ID))
	}
	b.answer(w, map[string]any{
		"@odata.id": "/redfish/v1/Systems", "@odata.type": "#ComputerSystemCollection.ComputerSystemCollection", "Name": "Systems",
		"Members": members, "Members@odata.count": len(members),
	})
}

func (b *BMC) find(r *http.Request) *System {
	i := slices.IndexFunc(b.systems, func(s System) bool { return s.ID == r.PathValue("id") })
	if i < 0 {
		return nil
	}
	return &b.systems[i]
}

func (b *BMC) show(w http.ResponseWriter, r *http.Request) {
	s := b.find(r)
	if s == nil {
		Fail(w, http.StatusNotFound, "Base.1.0.ResourceMissingAtURI", "there is no such system")
		return
	}
	path := "/redfish/v1/Systems/" + s.ID
	reset := map[string]any{"target": s.Target}
	switch {
	case len(s.Resets) == 0:
	case b.o.Vendor == OpenBMC:
		reset["@Redfish.ActionInfo"] = path + "/ResetActionInfo"
	default:
		reset["ResetType@Redfish.AllowableValues"] = s.Resets
	}
	body := map[string]any{
		"@odata.id": path, "@odata.type": "#ComputerSystem.v1_20_0.ComputerSystem", "Id": s.ID, "Name": "System", "SystemType": "Physical",
		"UUID": s.UUID, "SerialNumber": s.Serial, "PowerState": s.Power, "Actions": map[string]any{"#ComputerSystem.Reset": reset},
		"Boot": map[string]any{"BootSourceOverrideEnabled": "Disabled", "BootSourceOverrideTarget": "None"},
	}
	if b.o.Vendor == IDRAC {
		body["@odata.etag"] = `W/"gen-7"`
	}
	b.answer(w, body)
}

func (b *BMC) actionInfo(w http.ResponseWriter, r *http.Request) {
	s := b.find(r)
	if s == nil {
		Fail(w, http.StatusNotFound, "Base.1.0.ResourceMissingAtURI", "there is no such system")
		return
	}
	b.answer(w, map[string]any{
		"@odata.id": r.URL.Path, "@odata.type": "#ActionInfo.v1_1_2.ActionInfo", "Id": "ResetActionInfo", "Name": "Reset Action Info",
		"Parameters": []any{map[string]any{"Name": "ResetType", "Required": true, "DataType": "String", "AllowableValues": s.Resets}},
	})
}

func (b *BMC) reset(w http.ResponseWriter, r *http.Request) {
	var asked struct{ ResetType string }
	_ = json.NewDecoder(io.LimitReader(r.Body, 1<<16)).Decode(&asked)
	s := b.find(r)
	restart := strings.HasSuffix(asked.ResetType, "Restart")
	switch {
	case s == nil:
		Fail(w, http.StatusNotFound, "Base.1.0.ResourceMissingAtURI", "there is no such system")
	case b.o.ReadOnly:
		Fail(w, http.StatusForbidden, "Base.1.0.InsufficientPrivilege", "the account may not do this")
	case b.o.Vendor == IDRAC && r.Header.Get("If-Match") != "":
		Fail(w, http.StatusPreconditionFailed, "Base.1.0.PreconditionFailed", "the ETag does not match")
	case len(s.Resets) > 0 && !slices.Contains(s.Resets, asked.ResetType):
		Fail(w, http.StatusBadRequest, "Base.1.0.ActionParameterValueNotInList", "the value is not in the list")
	case s.Power == "Off" && restart && b.o.Vendor == IDRAC:
		Fail(w, http.StatusConflict, "IDRAC.2.8.PSU501", "the server is already powered OFF")
	case s.Power == "Off" && restart:
		Fail(w, http.StatusBadRequest, "iLO.2.14.InvalidOperationForSystemState", "the operation is not valid for the state of the system")
	default:
		b.done = append(b.done, Done{s.Serial, asked.ResetType})
		if b.o.Reset != nil {
			b.o.Reset(*s, asked.ResetType)
		}
		s.Power = "On"
		if b.o.Vendor != Standard {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		w.Header().Set("Location", "/redfish/v1/TaskService/TaskMonitors/1")
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusAccepted)
		_ = json.NewEncoder(w).Encode(map[string]any{"@odata.id": "/redfish/v1/TaskService/Tasks/1", "Id": "1", "Name": "Reset", "TaskState": "Running"})
	}
}
