package history

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/binary"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
)

// A file with the answers for whole spans of time. The key of an answer contains the expression and
// its times, so after a change of the configuration, the rules or Drydock's version, only queries
// that differ are sent. An interrupted run loses only its last span.
type state struct {
	path string

	mu    sync.Mutex
	file  *os.File
	packs map[[sha256.Size]byte][]byte
}

const stateHead = "drydock backtest state 2 of "

func openState(path, cluster string) (*state, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the state: %w", err)
	}
	s := &state{path: path, file: file, packs: map[[sha256.Size]byte][]byte{}}
	if err := s.read(stateHead + cluster + "\n"); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return s, nil
}

func (s *state) read(head string) error {
	data, err := io.ReadAll(s.file)
	switch {
	case err != nil:
		return fmt.Errorf("reading the state: %w", err)
	case len(data) == 0:
		_, err := s.file.WriteString(head)
		return err
	case !strings.HasPrefix(string(data), stateHead):
		return fmt.Errorf("%s is not the state of a backtest, or an older Drydock wrote it: name another file with --state, or delete this one", s.path)
	case !strings.HasPrefix(string(data), head):
		return fmt.Errorf("the state in %s is of another cluster: name another file with --state", s.path)
	}
	whole := len(head)
	for {
		rest := data[whole:]
		if len(rest) < sha256.Size+4 {
			break
		}
		key := [sha256.Size]byte(rest)
		size := int(binary.BigEndian.Uint32(rest[sha256.Size:]))
		if rest = rest[sha256.Size+4:]; len(rest) < size {
			break
		}
		s.packs[key] = rest[:size]
		whole += sha256.Size + 4 + size
	}
	if whole < len(data) { // the last run stopped while it wrote an answer
		if err := s.file.Truncate(int64(whole)); err != nil {
			return fmt.Errorf("writing the state: %w", err)
		}
	}
	return nil
}

func stateKey(q question, from, until, step int64) [sha256.Size]byte {
	return sha256.Sum256(fmt.Appendf(nil, "%d %d %d %s %t %s", from, until, step, q.offset, q.values, q.text("")))
}

func (s *state) get(key [sha256.Size]byte) (out []series, known bool, err error) {
	s.mu.Lock()
	pack, known := s.packs[key]
	s.mu.Unlock()
	if !known {
		return nil, false, nil
	}
	plain, err := gzip.NewReader(bytes.NewReader(pack))
	if err == nil {
		if err = gob.NewDecoder(plain).Decode(&out); err == nil {
			_, err = io.Copy(io.Discard, plain) // read on to the checksum at the end
		}
	}
	if err != nil {
		return nil, false, fmt.Errorf("the state in %s is damaged (%w): name another file with --state, or delete this one", s.path, err)
	}
	return out, true, nil
}

func (s *state) put(key [sha256.Size]byte, of []series) error {
	var pack bytes.Buffer
	packed := gzip.NewWriter(&pack)
	if err := errors.Join(gob.NewEncoder(packed).Encode(of), packed.Close()); err != nil {
		return fmt.Errorf("writing the state: %w", err)
	}
	entry := binary.BigEndian.AppendUint32(key[:], uint32(pack.Len())) //nolint:gosec // an answer is far below 4 GiB
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.packs[key]; known {
		return nil
	}
	s.packs[key] = pack.Bytes()
	if _, err := s.file.Write(append(entry, pack.Bytes()...)); err != nil {
		return fmt.Errorf("writing the state: %w", err)
	}
	return nil
}

func (s *state) close() error {
	if s == nil {
		return nil
	}
	return s.file.Close()
}
