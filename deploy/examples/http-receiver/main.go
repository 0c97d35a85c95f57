// Command http-receiver is an example of a receiver for Drydock's providers.http. It power-cycles a
// machine by running your command:
//
//	http-receiver ADDRESS KEY-FILE MACHINES-FILE COMMAND
//
// MACHINES-FILE is JSON with the name of each machine by its UUID: {"systemUUID": "name"}. COMMAND
// gets the name as its argument.
package main

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"time"
)

type receiver struct {
	key      []byte            // the same bytes as signingKeyFile
	machines map[string]string // the machine's name, by systemUUID
	command  string
	taken    sync.Map // the attempts so far; a real receiver keeps them on disk, because after a restart it must not repeat an attempt
}

func (r *receiver) answer(h http.Header, body []byte) (int, map[string]any) {
	mac := hmac.New(sha256.New, r.key)
	_, _ = fmt.Fprintf(mac, "%s.%s.%s", h.Get("Webhook-Id"), h.Get("Webhook-Timestamp"), body)
	want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	at, _ := strconv.ParseInt(h.Get("Webhook-Timestamp"), 10, 64)
	var ask struct {
		Action, Attempt, UID, SystemUUID string
		Deadline                         time.Time
	}
	bad := json.Unmarshal(body, &ask)
	machine := r.machines[ask.SystemUUID]
	_, seen := r.taken.Load(ask.Attempt)
	switch {
	case !hmac.Equal([]byte(want), []byte(h.Get("Webhook-Signature"))), time.Since(time.Unix(at, 0)).Abs() > 5*time.Minute:
		return 401, map[string]any{"message": "the signature is wrong, or older than 5 minutes"}
	case bad != nil || machine == "":
		return 404, map[string]any{"message": "no machine has the UUID " + ask.SystemUUID}
	case ask.Action == "observe":
		return 200, map[string]any{"uid": ask.UID, "can": []string{"reboot"}, "machine": "unknown"}
	case ask.Action != "reboot":
		return 422, map[string]any{"message": "only reboot is possible here"}
	case !seen && time.Now().After(ask.Deadline):
		return 422, map[string]any{"message": "the deadline " + ask.Deadline.String() + " has passed"}
	}
	run, _ := r.taken.LoadOrStore(ask.Attempt, sync.OnceValue(func() error {
		return exec.CommandContext(context.Background(), r.command, machine).Run() // the command continues if the client disconnects
	}))
	if err := run.(func() error)(); err != nil { // a repeated attempt gets the first answer
		return 500, map[string]any{"message": "power-cycling " + machine + ": " + err.Error()}
	}
	return 202, map[string]any{"message": "power-cycled " + machine}
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, in *http.Request) {
	body, _ := io.ReadAll(io.LimitReader(in.Body, 32<<10))
	status, document := r.answer(in.Header, body)
	log.Println(in.Method, in.URL.Path, in.Header.Get("Webhook-Id"), status, document)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(document)
}

func fatal(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func main() {
	if len(os.Args) != 5 {
		log.Fatal("usage: http-receiver ADDRESS KEY-FILE MACHINES-FILE COMMAND")
	}
	key, err := os.ReadFile(os.Args[2])
	fatal(err)
	list, err := os.ReadFile(os.Args[3])
	fatal(err)
	command, err := exec.LookPath(os.Args[4])
	fatal(err)
	r := &receiver{key: key, command: command}
	fatal(json.Unmarshal(list, &r.machines))
	log.Fatal(http.ListenAndServe(os.Args[1], r))
}
