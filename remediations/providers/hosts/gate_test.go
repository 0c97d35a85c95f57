package hosts

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"drydock.dev/drydock/remediations/testing/providertest"
)

// On a host of the conformance suite sshd runs this test's own program in place of the script. Its
// environment has these variables: the socket of the test, the connection of the command, and the
// path of the installed script.
const gateSocket, gateConnection, gateScript = "DRYDOCK_GATE", "DRYDOCK_CONNECTION", "DRYDOCK_SCRIPT"

func TestMain(m *testing.M) {
	if os.Getenv(gateSocket) != "" {
		os.Exit(gate())
	}
	m.Run() // TestMain passes the result on itself
}

// arrival is a command that has arrived at a host.
type arrival struct {
	Connection, Line string
}

// order is the test's order to the gate.
type order struct {
	Fault  providertest.Fault
	Faulty bool
}

// gate lets the script do the requested work, or misbehaves.
func gate() int {
	test, err := net.Dial("unix", os.Getenv(gateSocket))
	if err != nil {
		return 70
	}
	defer func() { _ = test.Close() }()
	to, from := json.NewEncoder(test), json.NewDecoder(test)
	var o order
	if to.Encode(arrival{os.Getenv(gateConnection), os.Getenv("SSH_ORIGINAL_COMMAND")}) != nil || from.Decode(&o) != nil {
		return 70
	}
	var stdout, stderr bytes.Buffer
	code := 0
	if !o.Faulty || o.Fault.Done {
		cmd := exec.Command(os.Getenv(gateScript))
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		var exit *exec.ExitError
		switch err := cmd.Run(); {
		case errors.As(err, &exit):
			code = exit.ExitCode()
		case err != nil:
			return 70
		}
	}
	// The test counts the command when its work is done, and cuts the connection if that is the
	// fault.
	if to.Encode("done") != nil || from.Decode(new(string)) != nil {
		return 70
	}
	if o.Faulty {
		return misanswer(o.Fault, stdout.String(), to, from)
	}
	_, _ = os.Stdout.Write(stdout.Bytes())
	_, _ = os.Stderr.Write(stderr.Bytes())
	return code
}

// misanswer answers with the fault, and returns the exit code.
func misanswer(f providertest.Fault, answer string, to *json.Encoder, from *json.Decoder) int {
	// await waits until the test has cut the connection, or ends.
	await := func() int {
		_ = to.Encode("cut")
		_ = from.Decode(new(string))
		return 70
	}
	switch f.Kind {
	case providertest.Half:
		_, _ = io.WriteString(os.Stdout, answer[:len(answer)/2])
		return await()
	case providertest.Garbage:
		_, _ = io.WriteString(os.Stdout, `{"message": "`+f.Text)
		return 0
	case providertest.Endless, providertest.EndlessHeader:
		out := os.Stdout
		if f.Kind == providertest.EndlessHeader {
			out = os.Stderr
		}
		for range 1 << 10 {
			if _, err := io.WriteString(out, strings.Repeat("x", 64<<10)); err != nil {
				return 70
			}
		}
		_ = to.Encode("overread")
		return 0
	case providertest.Trickle:
		for {
			if _, err := io.WriteString(os.Stdout, " "); err != nil {
				return 70
			}
			time.Sleep(20 * time.Millisecond)
		}
	case providertest.Answer:
		if f.Status < 500 {
			fmt.Fprintln(os.Stderr, "drydock-host: refused:", f.Text)
			return 77
		}
		fmt.Fprintln(os.Stderr, f.Text)
		return 1
	default: // Cut, Gone and Hang
		_ = from.Decode(new(string))
		return 70
	}
}
