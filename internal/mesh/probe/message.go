package probe

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"time"
)

// Proto is the protocol of a probe.
type Proto string

const (
	TCP Proto = "tcp"
	UDP Proto = "udp"
)

// Protos returns all protocols.
func Protos() []Proto { return []Proto{TCP, UDP} }

const (
	// headerSize is in bytes. The shortest message has only a header.
	headerSize = 72
	// MaxSize is the length of the longest message in bytes, which fills a jumbo frame.
	MaxSize = 8952

	signed = headerSize - sha256.Size
)

var magic = [4]byte{'d', 'd', 'm', '1'}

type kind byte

const (
	question kind = 'q'
	answer   kind = 'a'
)

var (
	errMalformed       = errors.New("the data is not a message of this protocol")
	errUnauthenticated = errors.New("the message is not signed with one of this agent's keys")
)

// All bytes after the message's header are zeros.
type message struct {
	kind   kind
	proto  Proto
	length int
	at     time.Time
	nonce  [16]byte
	node   [8]byte
}

func fingerprint(node string) (f [8]byte) {
	sum := sha256.Sum256([]byte(node))
	copy(f[:], sum[:])
	return f
}

func (m message) seal(k Key) []byte {
	b := make([]byte, m.length)
	copy(b, magic[:])
	b[4], b[5] = byte(m.kind), m.proto[0]
	binary.BigEndian.PutUint16(b[6:], uint16(m.length))
	binary.BigEndian.PutUint64(b[8:], uint64(m.at.UnixNano()))
	copy(b[16:], m.nonce[:])
	copy(b[32:], m.node[:])
	copy(b[signed:], mac(k, b[:signed]))
	return b
}

// open returns the key that signed the header. The caller must check that the whole message has the
// length in the header.
func open(header []byte, keys []Key) (message, Key, error) {
	if len(header) < headerSize || !bytes.Equal(header[:4], magic[:]) {
		return message{}, nil, errMalformed
	}
	m := message{
		kind: kind(header[4]), length: int(binary.BigEndian.Uint16(header[6:])),
		at: time.Unix(0, int64(binary.BigEndian.Uint64(header[8:]))),
	}
	switch header[5] {
	case TCP[0]:
		m.proto = TCP
	case UDP[0]:
		m.proto = UDP
	}
	copy(m.nonce[:], header[16:])
	copy(m.node[:], header[32:])
	if m.proto == "" || (m.kind != question && m.kind != answer) || m.length < headerSize || m.length > MaxSize {
		return message{}, nil, errMalformed
	}
	for _, k := range keys {
		if hmac.Equal(mac(k, header[:signed]), header[signed:headerSize]) {
			return m, k, nil
		}
	}
	return message{}, nil, errUnauthenticated
}

// The message must have the length in the header, and zeros as padding.
func openWhole(b []byte, keys []Key) (message, Key, error) {
	m, k, err := open(b, keys)
	if err == nil && (m.length != len(b) || !zeros(b[headerSize:])) {
		return message{}, nil, errMalformed
	}
	return m, k, err
}

func (m message) answers(q message) bool {
	return m.kind == answer && m.proto == q.proto && m.nonce == q.nonce && m.at.Equal(q.at) && m.length == q.length
}

func mac(k Key, b []byte) []byte {
	h := hmac.New(sha256.New, k)
	h.Write(b)
	return h.Sum(nil)
}

func zeros(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}
