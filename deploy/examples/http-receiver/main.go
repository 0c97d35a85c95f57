// A receiver for Drydock's providers.http that power-cycles machines. Replace cycle and machines by
// your own.
package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"
)

var machines = map[string]string{"4c4c4544-0042-3510-8054-b7c04f4d3332": "pdu-7 plug-3"} // systemUUID -> plug

var taken sync.Map // attempts; keep them on disk: an attempt must not be carried out twice after a restart

func cycle(plug string) { fmt.Println("cycling", plug) }

func answer(h http.Header, body, key []byte) (int, map[string]any) {
	mac := hmac.New(sha256.New, key)
	_, _ = fmt.Fprintf(mac, "%s.%s.%s", h.Get("Webhook-Id"), h.Get("Webhook-Timestamp"), body)
	want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	at, _ := strconv.ParseInt(h.Get("Webhook-Timestamp"), 10, 64)
	var ask struct{ Action, Attempt, UID, SystemUUID string }
	bad := json.Unmarshal(body, &ask)
	plug := machines[ask.SystemUUID]
	switch {
	case !hmac.Equal([]byte(want), []byte(h.Get("Webhook-Signature"))), time.Since(time.Unix(at, 0)).Abs() > 5*time.Minute:
		return 401, map[string]any{"message": "the signature is wrong, or older than 5 minutes"}
	case bad != nil || plug == "":
		return 404, map[string]any{"message": "no machine has the UUID " + ask.SystemUUID}
	case ask.Action == "observe":
		return 200, map[string]any{"uid": ask.UID, "can": []string{"reboot"}, "machine": "unknown"}
	case ask.Action != "reboot":
		return 422, map[string]any{"message": "only reboot is possible here"}
	}
	if _, before := taken.LoadOrStore(ask.Attempt, true); !before {
		cycle(plug)
	}
	return 202, map[string]any{"message": "cycled " + plug}
}

func main() {
	key, err := os.ReadFile(os.Args[2]) // the same bytes as signingKeyFile
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(http.ListenAndServe(os.Args[1], http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(io.LimitReader(r.Body, 32<<10))
		status, document := answer(r.Header, body, key)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(document)
	})))
}
