#!/usr/bin/env python3
"""A receiver for Drydock's providers.http that power-cycles machines. Replace cycle() and MACHINES by your own."""
import base64, hashlib, hmac, json, sys, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

KEY = open(sys.argv[2], "rb").read()  # the same bytes as signingKeyFile
MACHINES = {"4c4c4544-0042-3510-8054-b7c04f4d3332": "pdu-7 plug-3"}  # systemUUID -> plug
taken = {}  # attempts; keep them on disk: an attempt must not be carried out twice after a restart

def cycle(plug):
    print("cycling", plug, flush=True)

def answer(headers, body):
    stamp = headers.get("Webhook-Timestamp", "0")
    signed = b".".join([headers.get("Webhook-Id", "").encode(), stamp.encode(), body])
    want = "v1," + base64.b64encode(hmac.digest(KEY, signed, hashlib.sha256)).decode()
    if not hmac.compare_digest(want, headers.get("Webhook-Signature", "")) or abs(time.time() - int(stamp)) > 300:
        return 401, {"message": "the signature is wrong, or older than 5 minutes"}
    ask = json.loads(body)
    plug = MACHINES.get(ask["systemUUID"])
    if plug is None:
        return 404, {"message": "no machine has the UUID " + ask["systemUUID"]}
    if ask["action"] == "observe":
        return 200, {"uid": ask["uid"], "can": ["reboot"], "machine": "unknown"}
    if ask["action"] != "reboot":
        return 422, {"message": "only reboot is possible here"}
    if taken.setdefault(ask["attempt"], headers) is headers:  # the first time
        cycle(plug)
    return 202, {"message": "cycled " + plug}

class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        status, document = answer(self.headers, self.rfile.read(min(int(self.headers["Content-Length"]), 32768)))
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(document).encode())

host, port = sys.argv[1].rsplit(":", 1)
ThreadingHTTPServer((host, int(port)), Receiver).serve_forever()
