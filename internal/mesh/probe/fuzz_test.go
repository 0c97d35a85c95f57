package probe

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// FuzzQuestion: no input breaks the server, and it answers only messages that are signed with its
// key.
func FuzzQuestion(f *testing.F) {
	now := time.Unix(1_800_000_000, 0)
	sound := message{kind: question, proto: UDP, length: 100, at: now}.seal(oldKey)
	f.Add(sound)
	f.Add(sound[:headerSize])
	f.Add(message{kind: answer, proto: TCP, length: headerSize, at: now}.seal(oldKey))
	f.Add(message{kind: question, proto: TCP, length: MaxSize, at: now}.seal(newKey))
	f.Add([]byte("ddm1"))
	s, err := NewServer(ServerOptions{Listen: ":0", Node: "b", Now: func() time.Time { return now }})
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, b []byte) {
		s.gate = newGate(Limits{})
		q, k, err := openWhole(b, []Key{oldKey})
		if err != nil {
			require.Nil(t, k)
			return
		}
		again := q.seal(oldKey)
		require.Equal(t, again, b, "what is accepted is what sealing makes, byte by byte")
		if a := s.answer(q, k, netip.MustParseAddr("10.0.0.1")); a != nil {
			require.Equal(t, question, q.kind)
			require.LessOrEqual(t, len(a), len(b))
		}
	})
}

// FuzzAnswer: no input breaks the client, and it accepts only the answer to its question.
func FuzzAnswer(f *testing.F) {
	q := message{kind: question, proto: UDP, length: 100, at: time.Unix(1_800_000_000, 0), nonce: [16]byte{1, 2, 3}}
	a := q
	a.kind, a.node = answer, fingerprint("b")
	f.Add(a.seal(oldKey))
	f.Add(q.seal(oldKey))
	f.Add(a.seal(newKey))
	f.Add(a.seal(oldKey)[:99])
	f.Fuzz(func(t *testing.T, b []byte) {
		got, _, err := openWhole(b, []Key{oldKey, newKey})
		if err != nil || !got.answers(q) {
			return
		}
		got.node = a.node
		require.Equal(t, a, got)
	})
}

// FuzzKeys: people write key files, so any content is possible.
func FuzzKeys(f *testing.F) {
	f.Add([]byte(string(oldKey) + "\n" + string(newKey)))
	f.Add([]byte("\r\n \x00"))
	f.Fuzz(func(t *testing.T, content []byte) {
		keys, err := parseKeys(content)
		if err != nil {
			require.Nil(t, keys)
			return
		}
		require.NotEmpty(t, keys)
		require.LessOrEqual(t, len(keys), maxKeys)
		for _, k := range keys {
			require.GreaterOrEqual(t, len(k), minKeyBytes)
		}
	})
}
