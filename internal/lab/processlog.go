package lab

import (
	"errors"
	"os"
	"strings"
)

// Log returns the path of the file with the process's output.
func (p *Process) Log() string { return p.spec.Log }

// LogEnd returns the name of the log file and its last lines, for errors.
func (p *Process) LogEnd() string {
	return "its log " + p.spec.Log + " ends:\n" + tail(p.spec.Log, 15)
}

func (p *Process) exitError() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil {
		return errors.New("exit status 0")
	}
	return p.err
}

// At most the last 16 KiB of the file are read.
func tail(path string, lines int) string {
	f, err := os.Open(path)
	if err != nil {
		return "(" + err.Error() + ")"
	}
	defer f.Close()
	buf := make([]byte, 16<<10)
	info, err := f.Stat()
	if err != nil {
		return "(" + err.Error() + ")"
	}
	n, _ := f.ReadAt(buf, max(0, info.Size()-int64(len(buf)))) // io.EOF when the file is short
	all := strings.Split(strings.TrimRight(string(buf[:n]), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
