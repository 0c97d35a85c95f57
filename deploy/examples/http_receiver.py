#!/usr/bin/env python3
"""An example of a receiver for Drydock's providers.http. It power-cycles a machine by running your command:

    http_receiver.py ADDRESS KEY-FILE MACHINES-FILE COMMAND

MACHINES-FILE is JSON with the name of each machine by its UUID: {"systemUUID": "name"}. COMMAND gets the name as its argument."""
import base64, hashlib, hmac, json, shutil, subprocess, sys, threading, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

if len(sys.argv) != 5:
    sys.exit(__doc__)
KEY = open(sys.argv[2], "rb").read()  # the same bytes as signingKeyFile
MACHINES = json.load(open(sys.argv[3]))  # the machine's name, by systemUUID
COMMAND = shutil.which(sys.argv[4]) or sys.exit("there is no program " + sys.argv[4])
taken = {}  # the attempts so far; a real receiver keeps them on disk: after a restart it must not repeat an attempt
one = threading.Lock()

def run(attempt, machine):
    with one:
        if attempt not in taken:  # a repeated attempt gets the first answer
            taken[attempt] = subprocess.run([COMMAND, machine]).returncode
    if taken[attempt] != 0:
        return 500, {"message": f"power-cycling {machine}: exit status {taken[attempt]}"}
    return 202, {"message": "power-cycled " + machine}

def answer(headers, body):
    stamp = headers.get("Webhook-Timestamp", "0")
    signed = b".".join([headers.get("Webhook-Id", "").encode(), stamp.encode(), body])
    want = "v1," + base64.b64encode(hmac.digest(KEY, signed, hashlib.sha256)).decode()
    if not hmac.compare_digest(want, headers.get("Webhook-Signature", "")) or abs(time.time() - int(stamp)) > 300:
        return 401, {"message": "the signature is wrong, or older than 5 minutes"}
    ask = json.loads(body)
    machine = MACHINES.get(ask["systemUUID"])
    if machine is None:
        return 404, {"message": "no machine has the UUID " + ask["systemUUID"]}
    if ask["action"] == "observe":
        return 200, {"uid": ask["uid"], "can": ["reboot"], "machine": "unknown"}
    if ask["action"] != "reboot":
        return 422, {"message": "only reboot is possible here"}
    if ask["attempt"] not in taken and time.strftime("%FT%TZ", time.gmtime()) > ask["deadline"]:
        return 422, {"message": "the deadline " + ask["deadline"] + " has passed"}
    return run(ask["attempt"], machine)

class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        status, document = answer(self.headers, self.rfile.read(min(int(self.headers["Content-Length"]), 32768)))
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(document).encode())

host, port = sys.argv[1].rsplit(":", 1)
ThreadingHTTPServer((host, int(port)), Receiver).serve_forever()
