package main

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"drydock.dev/drydock/internal/cli"
	"drydock.dev/drydock/internal/lab/civosim"
	"drydock.dev/drydock/remediations/providers/redfish/sim"
)

// obj is an object of the API server, or a part of one.
type obj = map[string]any

// apiServer serves a few objects by their paths, and refuses to change them.
type apiServer struct {
	mu      sync.Mutex
	objects map[string]obj
	// forbids is the part of a path that the account may not read.
	forbids string
	changes []string
}

func (a *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	answer := func(code int, of any) {
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(of) // a client that left fails by itself
	}
	no := func(code int, reason string) {
		answer(code, obj{
			"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": reason + " " + r.URL.Path,
			"details": obj{"name": filepath.Base(r.URL.Path)},
		})
	}
	one, there := a.objects[r.URL.Path]
	switch {
	case r.Method != http.MethodGet:
		a.changes = append(a.changes, r.Method+" "+r.URL.Path)
		no(http.StatusForbidden, "Forbidden")
	case a.forbids != "" && strings.Contains(r.URL.Path, a.forbids):
		no(http.StatusForbidden, "Forbidden")
	case !there:
		no(http.StatusNotFound, "NotFound")
	default:
		answer(http.StatusOK, one)
	}
}

// put adds the object, and its kind's list, to the API server. A namespace is in its metadata.
func (a *apiServer) put(apiVersion, kind string, o obj) {
	meta := o["metadata"].(obj)
	o["apiVersion"], o["kind"], meta["creationTimestamp"] = apiVersion, kind, "2026-01-01T00:00:00Z"
	at := "/apis/" + apiVersion
	if !strings.Contains(apiVersion, "/") {
		at = "/api/" + apiVersion
	}
	if ns, _ := meta["namespace"].(string); ns != "" {
		at += "/namespaces/" + ns
	}
	at += "/" + strings.ToLower(kind) + "s"
	a.objects[fmt.Sprint(at, "/", meta["name"])] = o
	a.list(at, apiVersion, kind, o)
}

// list adds objects to the list at the path.
func (a *apiServer) list(at, apiVersion, kind string, more ...obj) {
	if a.objects[at] == nil {
		a.objects[at] = obj{"apiVersion": apiVersion, "kind": kind + "List", "metadata": obj{}, "items": []obj{}}
	}
	a.objects[at]["items"] = append(a.objects[at]["items"].([]obj), more...)
}

// unused is an address at which no program listens. The port of a server that was closed may belong
// to another one a moment later.
const unused = "127.0.0.1:1"

// room is a cluster with one Node, n1, and the provider of its machine.
type room struct {
	t    *testing.T
	dir  string
	api  *apiServer
	node obj // the Node, before it is put into the API server
	// section is what the configuration has below providers, and plan the plan's steps.
	section obj
	plan    []obj
	// others is the plan of a policy for other Nodes, which comes first. It is empty if there is no
	// such policy.
	others []obj
	// changed returns what the provider was asked to change, besides the API server.
	changed func() []string
	// stop makes the provider unreachable. It is nil if the provider is the API server.
	stop func()
	// url replaces URL in what is expected.
	url string
}

const (
	theUUID   = "4c4c4544-0042-3510-8054-b7c04f4d3332"
	otherUUID = "4c4c4544-0042-3510-8054-b7c04f4d9999"
	theBoot   = "0b5f6f5e-6a2f-4a57-9d3c-8f9c3f1f7a11"
)

func newRoom(t *testing.T) *room {
	return &room{
		t: t, dir: t.TempDir(), api: &apiServer{objects: map[string]obj{}}, plan: []obj{{"step": "reboot"}},
		node: obj{
			"metadata": obj{"name": "n1", "uid": "uid-1"}, "spec": obj{"providerID": "rack://1"},
			"status": obj{
				"nodeInfo":  obj{"bootID": theBoot, "systemUUID": theUUID},
				"addresses": []obj{{"type": "InternalIP", "address": "127.0.0.1"}},
			},
		},
	}
}

func (r *room) file(name, text string) string {
	path := filepath.Join(r.dir, name)
	require.NoError(r.t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func (r *room) meta() obj            { return r.node["metadata"].(obj) }
func (r *room) provider(id string)   { r.node["spec"].(obj)["providerID"] = id }
func (r *room) systemUUID(id string) { r.node["status"].(obj)["nodeInfo"].(obj)["systemUUID"] = id }
func (r *room) boot(id string)       { r.node["status"].(obj)["nodeInfo"].(obj)["bootID"] = id }
func own(kind, version, name, uid string) []obj {
	return []obj{{"apiVersion": version, "kind": kind, "name": name, "uid": uid, "controller": true}}
}

// check runs drydock check about the machine of n1.
func (r *room) check(provider string) (code int, stdout, stderr string) {
	r.api.put("v1", "Node", r.node)
	api := httptest.NewServer(r.api)
	defer api.Close()
	kubeconfig := r.file("kubeconfig", "{apiVersion: v1, kind: Config, clusters: [{name: c, cluster: {server: \""+api.URL+"\"}}], contexts: [{name: c, context: {cluster: c}}], current-context: c}\n")
	if r.url == "" {
		r.url = api.URL
	}
	policies := []obj{{"name": "p", "match": []string{`alertname="A"`}, "plan": r.plan}}
	if r.others != nil {
		other := obj{"name": "others", "match": []string{`alertname="A"`}, "nodeSelector": obj{"matchLabels": obj{"pool": "others"}}, "plan": r.others}
		policies = append([]obj{other}, policies...)
	}
	config, err := json.Marshal(obj{
		"apiVersion": "drydock.dev/v1alpha1", "kind": "Config", "receiver": obj{"tokenFile": r.file("token", "secret")},
		"alertmanager": obj{"urls": []string{"http://alertmanager:9093"}}, "providers": r.section,
		"policies": policies,
	})
	require.NoError(r.t, err)
	return call(r.t, "check", r.file("drydock.yaml", string(config)), "--kubeconfig", kubeconfig, "--provider", provider, "--node", "n1")
}

// trouble is a cause that makes a provider refuse, and what check says then.
type trouble struct {
	cause func(*room)
	says  string
}

func unreachable(says string) trouble { return trouble{func(r *room) { r.stop() }, says} }

// TestCheckProvesEachProvider: check proves of each provider that it is reachable, accepts the
// credentials and knows the machine, and shows the first call. It changes nothing, whether it finds
// trouble or not.
func TestCheckProvesEachProvider(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		provider string
		begin    func(*room)
		says     []string
		troubles map[string]trouble
	}{
		"redfish": {"redfish", beginRedfish,
			[]string{
				"reboot of Node n1: state of the machine: the BMC says that the machine's power is \"On\"",
				`(nothing was sent): POST URL/redfish/v1/Systems/1/Actions/ComputerSystem.Reset {"ResetType":"ForceRestart"}`,
			},
			map[string]trouble{
				"credentials":  {func(r *room) { r.file("password", "wrong") }, "refuses"},
				"reachability": unreachable("connection refused"),
				"identity":     {func(r *room) { r.systemUUID(otherUUID) }, "UUID"},
			},
		},
		"redfish, soft": {"redfish", func(r *room) {
			beginRedfish(r)
			r.plan = []obj{{"step": "reboot", "soft": true, "attempts": 2}}
		}, []string{`{"ResetType":"GracefulRestart"}`}, nil},
		"fence, soft": {"fence", func(r *room) {
			beginFence(r)
			r.plan = []obj{{"step": "reboot", "soft": true, "attempts": 2}}
		}, []string{"the first attempt is soft, and would be skipped: ", "(nothing was sent): URL action=off "}, nil},
		"civo": {"civo", beginCivo,
			[]string{
				"(nothing was sent): POST URL/v2/instances/" + theUUID + "/hard_reboots",
				"replace of Node n1: the first call would send (nothing was sent): POST URL/v2/kubernetes/clusters/cluster-1/recycle {\"hostname\":\"n1\"",
			},
			map[string]trouble{
				"credentials":  {func(r *room) { r.file("key", "wrong") }, "refuses"},
				"reachability": unreachable("connection refused"),
				"identity":     {func(r *room) { r.provider("civo://" + otherUUID) }, otherUUID},
			},
		},
		"hosts": {"hosts", beginHost,
			[]string{
				"reboot of Node n1: the first call would send (nothing was sent): ssh URL sudo -n /usr/local/sbin/drydock-host reboot " + theBoot + " check-1-1",
				"sysrq of Node n1: the first call would send (nothing was sent): ssh URL sudo -n /usr/local/sbin/drydock-host sysrq " + theBoot + " check-1-1",
				"restart-kubelet of Node n1: the first call would send (nothing was sent): ssh URL sudo -n /usr/bin/systemd-run --unit=drydock-restart-kubelet.service",
			},
			map[string]trouble{
				"credentials":  {func(r *room) { r.file("key", newKey(r.t).pem) }, "sshd refuses user \"drydock\" with the key"},
				"reachability": unreachable("connection refused"),
				"host key": {func(r *room) {
					r.file("known", knownHost(r.section["hosts"].(obj)["port"], newKey(r.t)))
				}, "the host showed the key"},
				"identity": {func(r *room) { r.boot(otherUUID) }, "the boot ID of host \"n1\" is " + theBoot},
			},
		},
		"cluster api": {"clusterAPI", beginClusterAPI,
			[]string{"replace of Node n1: the first call would send (nothing was sent): PATCH URL/apis/cluster.x-k8s.io/v1beta2/namespaces/fleet/machines/one/status"},
			map[string]trouble{
				"rights":   {func(r *room) { r.api.forbids = "/machines" }, "Forbidden"},
				"identity": {func(r *room) { r.provider("rack://2") }, "its spec.providerID is \"rack://1\" and the Node's is \"rack://2\""},
				"absence":  {func(r *room) { delete(r.api.objects, "/apis/cluster.x-k8s.io/v1beta2/namespaces/fleet/clusters/prod") }, "Cluster fleet/prod does not exist"},
			},
		},
		"karpenter": {"karpenter", beginKarpenter,
			[]string{"replace of Node n1: the first call would send (nothing was sent): DELETE URL/apis/karpenter.sh/v1/nodeclaims/one"},
			map[string]trouble{
				"rights":   {func(r *room) { r.api.forbids = "/nodeclaims" }, "Forbidden"},
				"identity": {func(r *room) { r.meta()["ownerReferences"] = own("NodeClaim", "karpenter.sh/v1", "one", "claim-2") }, "NodeClaim one has the Node's provider ID"},
			},
		},
		"external": {"external", beginExternal,
			[]string{"external-replace of Node n1: not checked: no plan for this Node has the step", "external of Node n1: the first call would send (nothing was sent): POST URL/apis/self-node-remediation.medik8s.io/v1alpha1/namespaces/snr/selfnoderemediations {"},
			map[string]trouble{
				"rights": {func(r *room) { r.api.forbids = "/selfnoderemediationtemplates" }, "Forbidden"},
				"absence": {func(r *room) {
					delete(r.api.objects, "/apis/self-node-remediation.medik8s.io/v1alpha1/namespaces/snr/selfnoderemediationtemplates/own")
				}, "does not exist; create it, or correct the plan"},
				"identity": {func(r *room) { r.meta()["annotations"] = obj{} }, "the remediator's agent would never reboot the Node"},
			},
		},
		"external-replace": {"external", beginMachineDeletion,
			[]string{"external-replace of Node n1: the first call would send (nothing was sent): POST URL/apis/machine-deletion-remediation.medik8s.io/v1alpha1/namespaces/mdr/machinedeletionremediations {"},
			map[string]trouble{
				"identity": {func(r *room) { r.provider("rack://2") }, "Machine one does not match the Node"},
			},
		},
		"annotation of the Node": {"annotation", func(r *room) { r.section = obj{"annotation": obj{"preset": "deckhouse"}} },
			[]string{"reboot of Node n1: the first call would send (nothing was sent): PATCH URL/api/v1/nodes/n1 {", `"update.node.deckhouse.io/reboot":"drydock"`},
			map[string]trouble{
				"under way": {func(r *room) { r.meta()["annotations"] = obj{"update.node.deckhouse.io/reboot": ""} }, "is already being rebooted or kept off"},
			},
		},
		"annotation of a host": {"annotation", beginMetal3,
			[]string{"reboot of Node n1: the first call would send (nothing was sent): PATCH URL/apis/metal3.io/v1alpha1/namespaces/metal/baremetalhosts/host-a {", `"reboot.metal3.io":"{\"mode\":\"hard\"}"`},
			map[string]trouble{
				"rights":   {func(r *room) { r.api.forbids = "/baremetalhosts" }, "Forbidden"},
				"identity": {func(r *room) { r.provider("metal3://metal/host-b/m3m-a") }, "Machine a does not match the Node"},
			},
		},
		"fence": {"fence", beginFence,
			[]string{
				"reboot of Node n1: state of the machine: the fence agent says that the machine is on",
				"(nothing was sent): URL action=off password=[secret] plug=1 username=drydock",
			},
			map[string]trouble{
				"credentials":  {func(r *room) { r.file("password", "wrong") }, "the device cannot be reached, or refuses the account"},
				"reachability": unreachable("Connection timed out"),
				"identity":     {func(r *room) { r.file("machines.csv", "node,plug\nn2,1\n") }, "no agent of providers.fence has this node"},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRoom(t)
			tc.begin(r)
			code, stdout, stderr := r.check(tc.provider)
			require.Equal(t, cli.ExitOK, code, stdout+stderr)
			require.Contains(t, stdout, "of Node n1: the provider answers, knows this machine and would not refuse")
			for _, says := range tc.says {
				require.Contains(t, stdout, strings.ReplaceAll(says, "URL", r.url))
			}
			require.NotContains(t, stdout, "horse-battery")
			r.unchanged()
			for cause, trouble := range tc.troubles {
				t.Run(cause, func(t *testing.T) {
					r := newRoom(t)
					tc.begin(r)
					trouble.cause(r)
					code, stdout, stderr := r.check(tc.provider)
					require.Equal(t, cli.ExitFailed, code, stdout+stderr)
					require.Contains(t, stdout, "the provider would refuse: ")
					require.Contains(t, stdout, trouble.says)
					require.NotContains(t, stdout, "horse-battery")
					r.unchanged()
				})
			}
		})
	}
}

func (r *room) unchanged() {
	require.Empty(r.t, r.api.changes)
	if r.changed != nil {
		require.Empty(r.t, r.changed())
	}
}

const (
	user     = "drydock"
	password = "horse-battery-staple"
)

func beginRedfish(r *room) {
	cert, err := sim.SelfSigned()
	require.NoError(r.t, err)
	bmc := sim.New(sim.Options{Vendor: sim.Standard, Username: user, Password: password, Systems: []sim.System{{ID: "1", UUID: theUUID}}})
	server := httptest.NewUnstartedServer(bmc)
	server.TLS = cert.TLS()
	server.StartTLS()
	r.t.Cleanup(server.Close)
	r.section = obj{"redfish": obj{
		"usernameFile": r.file("username", user), "passwordFile": r.file("password", password),
		"bmcs": []obj{{"node": "n1", "url": server.URL, "fingerprint": cert.Fingerprint()}},
	}}
	r.others = []obj{{"step": "reboot", "soft": true, "attempts": 2}}
	r.url = server.URL
	r.stop = func() { r.section["redfish"].(obj)["bmcs"].([]obj)[0]["url"] = "https://" + unused }
	r.changed = func() (out []string) {
		for _, one := range bmc.Resets() {
			out = append(out, one.Kind)
		}
		return out
	}
}

func beginCivo(r *room) {
	civo, err := civosim.New(civosim.Options{ClusterID: "cluster-1", Region: "LON1", APIKey: password, Instances: []civosim.Instance{{ID: theUUID, Hostname: "n1"}, {Hostname: "n2"}}})
	require.NoError(r.t, err)
	r.t.Cleanup(civo.Close)
	r.provider("civo://" + theUUID)
	r.section = obj{"civo": obj{"apiURL": civo.URL(), "clusterID": "cluster-1", "region": "LON1", "apiKeyFile": r.file("key", password)}}
	r.plan = append(r.plan, obj{"step": "replace"})
	r.url, r.stop = civo.URL(), func() { r.section["civo"].(obj)["apiURL"] = "http://" + unused }
	r.changed = func() (out []string) {
		for _, one := range civo.Calls() {
			if one.Method != http.MethodGet {
				out = append(out, one.Method+" "+one.Path)
			}
		}
		return out
	}
}

// sshKey is a key, and the file of its private half.
type sshKey struct {
	ssh.Signer
	pem string
}

func newKey(t *testing.T) sshKey {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	signer, err := ssh.NewSignerFromKey(key)
	require.NoError(t, err)
	block, err := ssh.MarshalPrivateKey(key, "")
	require.NoError(t, err)
	return sshKey{signer, string(pem.EncodeToMemory(block))}
}

func knownHost(port any, key ssh.Signer) string {
	return knownhosts.Line([]string{fmt.Sprintf("[n1]:%v", port)}, key.PublicKey()) + "\n"
}

// sshHost is an sshd that answers the questions about its boot and its kubelet.
type sshHost struct {
	config *ssh.ServerConfig
	mu     sync.Mutex
	other  []string // commands that may change something
}

func (h *sshHost) serve(l net.Listener) {
	for {
		raw, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			_, channels, requests, err := ssh.NewServerConn(raw, h.config)
			if err != nil {
				_ = raw.Close()
				return
			}
			go ssh.DiscardRequests(requests)
			for one := range channels {
				if channel, in, err := one.Accept(); err == nil {
					go h.session(channel, in)
				}
			}
		}()
	}
}

func (h *sshHost) session(channel ssh.Channel, in <-chan *ssh.Request) {
	for one := range in {
		var line struct{ Command string }
		_ = ssh.Unmarshal(one.Payload, &line) // an empty command is not a question
		_ = one.Reply(true, nil)
		says, code := "", uint32(0)
		switch {
		case line.Command == "sudo -n /usr/local/sbin/drydock-host boot":
			says = theBoot + " sysrq\n"
		case strings.Contains(line.Command, "systemctl show"):
			unit := "LoadState=loaded\nActiveState=active\nSubState=running\nInvocationID=%032x\nDescription=x\n"
			says = fmt.Sprintf(unit, 1) + "\nLoadState=not-found\nActiveState=inactive\nSubState=dead\nInvocationID=\nDescription=x\n"
		case strings.Contains(line.Command, "journalctl"):
		default:
			h.mu.Lock()
			h.other = append(h.other, line.Command)
			h.mu.Unlock()
			code = 1
		}
		_, _ = channel.Write([]byte(says))
		_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Code uint32 }{code}))
		_ = channel.Close()
	}
}

func beginHost(r *room) {
	client, host := newKey(r.t), newKey(r.t)
	h := &sshHost{config: &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		if string(key.Marshal()) != string(client.PublicKey().Marshal()) {
			return nil, fmt.Errorf("not this one")
		}
		return nil, nil //nolint:nilnil // that is how it says yes
	}}}
	h.config.AddHostKey(host)
	l, err := new(net.ListenConfig).Listen(r.t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(r.t, err)
	go h.serve(l)
	r.t.Cleanup(func() { _ = l.Close() })
	port := l.Addr().(*net.TCPAddr).Port
	r.url, r.stop = fmt.Sprintf("-p %d drydock@127.0.0.1", port), func() { r.section["hosts"].(obj)["port"] = 1 }
	r.section = obj{"hosts": obj{
		"port": port, "keyFile": r.file("key", client.pem), "reboot": true, "sysrq": true,
		"knownHostsFile": r.file("known", knownHost(port, host)),
	}}
	r.changed = func() []string {
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.other
	}
}

func beginClusterAPI(r *room) {
	const version = "cluster.x-k8s.io/v1beta2"
	r.api.put(version, "Cluster", obj{"metadata": obj{"name": "prod", "namespace": "fleet", "uid": "cluster-1"}})
	r.api.put(version, "MachineSet", obj{"metadata": obj{"name": "pool", "namespace": "fleet", "uid": "set-1"}, "spec": obj{"replicas": 1}, "status": obj{"replicas": 1}})
	r.api.put(version, "Machine", obj{
		"metadata": obj{"name": "one", "namespace": "fleet", "uid": "machine-1", "resourceVersion": "7", "ownerReferences": own("MachineSet", version, "pool", "set-1")},
		"spec":     obj{"clusterName": "prod", "providerID": "rack://1"},
		"status":   obj{"nodeRef": obj{"name": "n1"}, "initialization": obj{"infrastructureProvisioned": true}},
	})
	r.api.list("/apis/"+version+"/namespaces/fleet/machinehealthchecks", version, "MachineHealthCheck")
	r.section, r.plan = obj{"clusterAPI": obj{"cluster": "fleet/prod"}}, []obj{{"step": "replace"}}
}

func beginKarpenter(r *room) {
	const version = "karpenter.sh/v1"
	of := func(kind string) obj {
		return obj{"type": kind, "status": "True", "reason": kind, "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}
	}
	labels := obj{"karpenter.sh/nodepool": "pool"}
	r.api.put(version, "NodePool", obj{"metadata": obj{"name": "pool", "uid": "pool-1"}, "status": obj{"conditions": []obj{of("Ready")}}})
	r.api.put(version, "NodeClaim", obj{
		"metadata": obj{"name": "one", "uid": "claim-1", "labels": labels, "finalizers": []string{"karpenter.sh/termination"}, "ownerReferences": own("NodePool", version, "pool", "pool-1")},
		"spec":     obj{"terminationGracePeriod": "1h"},
		"status":   obj{"nodeName": "n1", "providerID": "rack://1", "conditions": []obj{of("Registered"), of("Initialized")}},
	})
	r.meta()["labels"], r.meta()["finalizers"] = labels, []string{"karpenter.sh/termination"}
	r.meta()["ownerReferences"] = own("NodeClaim", version, "one", "claim-1")
	r.section, r.plan = obj{"karpenter": obj{}}, []obj{{"step": "replace"}}
}

// remediator adds a template of that kind in the namespace, which the plan's step names.
func (r *room) remediator(step, version, kind, namespace string) {
	r.api.put(version, kind+"Template", obj{"metadata": obj{"name": "own", "namespace": namespace}, "spec": obj{"template": obj{"spec": obj{}}}})
	r.api.list("/apis/"+version+"/namespaces/"+namespace+"/"+strings.ToLower(kind)+"s", version, kind)
	r.section = obj{"external": obj{}}
	r.plan = []obj{{"step": step, "wait": "10m", "template": obj{"apiVersion": version, "kind": kind + "Template", "namespace": namespace, "name": "own"}}}
}

func beginExternal(r *room) {
	r.meta()["annotations"] = obj{"is-reboot-capable.self-node-remediation.medik8s.io": "true"}
	r.remediator("external", "self-node-remediation.medik8s.io/v1alpha1", "SelfNodeRemediation", "snr")
}

func beginMachineDeletion(r *room) {
	const version, namespace = "machine.openshift.io/v1beta1", "openshift-machine-api"
	r.meta()["annotations"] = obj{"machine.openshift.io/machine": namespace + "/one"}
	r.api.put(version, "MachineSet", obj{"metadata": obj{"name": "pool", "namespace": namespace, "uid": "set-1"}, "spec": obj{"replicas": 1}, "status": obj{"replicas": 1}})
	r.api.put(version, "Machine", obj{
		"metadata": obj{"name": "one", "namespace": namespace, "uid": "machine-1", "ownerReferences": own("MachineSet", version, "pool", "set-1")},
		"spec":     obj{"providerID": "rack://1"}, "status": obj{"nodeRef": obj{"name": "n1"}},
	})
	r.remediator("external-replace", "machine-deletion-remediation.medik8s.io/v1alpha1", "MachineDeletionRemediation", "mdr")
}

func beginMetal3(r *room) {
	r.provider("metal3://metal/host-a/m3m-a")
	r.api.put("metal3.io/v1alpha1", "BareMetalHost", obj{
		"metadata": obj{"name": "host-a", "namespace": "metal", "uid": "host-1", "resourceVersion": "7"},
		"spec":     obj{"online": true, "consumerRef": obj{"kind": "Metal3Machine", "name": "m3m-a", "namespace": "metal"}},
		"status":   obj{"operationalStatus": "OK", "poweredOn": true, "provisioning": obj{"state": "provisioned"}},
	})
	r.api.put("cluster.x-k8s.io/v1beta2", "Machine", obj{
		"metadata": obj{"name": "a", "namespace": "metal", "uid": "machine-1"},
		"spec":     obj{"providerID": "metal3://metal/host-a/m3m-a", "infrastructureRef": obj{"kind": "Metal3Machine", "name": "m3m-a"}},
		"status":   obj{"nodeRef": obj{"name": "n1"}},
	})
	r.section = obj{"annotation": obj{"preset": "metal3", "namespace": "metal"}}
}

func beginFence(r *room) {
	asked, down := filepath.Join(r.dir, "asked"), filepath.Join(r.dir, "down")
	agent := r.file("fence_test", `#!/bin/sh
while read line; do
  case $line in
  action=*) echo "$line" >> `+asked+` ;;
  password=`+password+`) known=1 ;;
  esac
done
[ ! -e `+down+` ] || { echo "Connection timed out" >&2; exit 1; }
[ -n "$known" ] || { echo "Unable to connect/login to fencing device" >&2; exit 1; }
echo "Status: ON"
`)
	require.NoError(r.t, os.Chmod(agent, 0o700))
	r.section = obj{"fence": obj{"agents": []obj{{
		"agent": agent, "options": obj{"username": user}, "secretFiles": obj{"password": r.file("password", password)},
		"machinesFile": r.file("machines.csv", "node,plug\nn1,1\n"),
	}}}}
	r.url, r.stop = agent, func() { r.file("down", "") }
	r.changed = func() (out []string) {
		text, err := os.ReadFile(asked)
		require.True(r.t, err == nil || os.IsNotExist(err), err)
		for line := range strings.Lines(string(text)) {
			if line != "action=status\n" {
				out = append(out, line)
			}
		}
		return out
	}
}
