package statefile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"strings"

	"drydock.dev/drydock/remediations/rescue/apiserver"
)

const version = 1

// A line has all entries of one Append, so that either all of them are durable or none.
type parts struct {
	V   int    `json:"v"`
	Seq uint64 `json:"seq"`
	// A checksum of Seq and Entries. If it is wrong, the line was damaged or changed.
	CRC     string            `json:"crc"`
	Entries []json.RawMessage `json:"entries"`
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func sum(seq uint64, entries []json.RawMessage) string {
	c := crc32.Update(0, castagnoli, fmt.Appendf(nil, "%d", seq))
	for _, e := range entries {
		c = crc32.Update(c, castagnoli, append([]byte{'\n'}, e...))
	}
	return fmt.Sprintf("%08x", c)
}

func line(seq uint64, entries []apiserver.RescueEntry) []byte {
	p := parts{V: version, Seq: seq, Entries: []json.RawMessage{}}
	for _, e := range entries {
		p.Entries = append(p.Entries, json.RawMessage(e.Encode()))
	}
	p.CRC = sum(seq, p.Entries)
	var b bytes.Buffer
	enc := json.NewEncoder(&b) // Encode also writes the line's end
	enc.SetEscapeHTML(false)   // escaping would change the text of the entries, which people read
	if err := enc.Encode(p); err != nil {
		panic("encoding a line of the journal: " + err.Error()) // plain data can always be encoded
	}
	return b.Bytes()
}

type contents struct {
	journal apiserver.RescueJournal
	seq     uint64
	torn    string
}

// A crash may have cut off the last line, which is dropped: Append has not reported it as written.
// Any other line that this version would not write is an error.
func decode(text []byte) (contents, error) {
	var c contents
	for n := 1; len(text) > 0; n++ {
		one, rest, ended := bytes.Cut(text, []byte{'\n'})
		entries, seq, err := decodeLine(one)
		switch {
		// A crash has cut off this line: its end is missing, or a part did not reach the disk and
		// consists of zeros.
		case !ended, err != nil && len(rest) == 0 && bytes.IndexByte(one, 0) >= 0:
			c.torn = fmt.Sprintf("line %d, after its first %d bytes", n, len(one))
			return c, nil
		case err != nil:
			return contents{}, fmt.Errorf("line %d: %w", n, err)
		case n > 1 && seq != c.seq+1:
			return contents{}, fmt.Errorf("line %d has the number %d, but %d must follow: lines are missing, or were added", n, seq, c.seq+1)
		}
		for _, e := range entries {
			c.journal = c.journal.With(e)
		}
		c.seq, text = seq, rest
	}
	return c, nil
}

func decodeLine(text []byte) ([]apiserver.RescueEntry, uint64, error) {
	var p parts
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	switch err := d.Decode(&p); {
	case err != nil:
		return nil, 0, fmt.Errorf("the line is not readable: %w", err)
	case strings.TrimSpace(string(text[d.InputOffset():])) != "":
		return nil, 0, fmt.Errorf("the line has text after the JSON value")
	case p.V != version:
		return nil, 0, fmt.Errorf("the line has version %d, and this Drydock knows version %d", p.V, version)
	case p.CRC != sum(p.Seq, p.Entries):
		return nil, 0, fmt.Errorf("the line's checksum is wrong, so the line was changed after Drydock wrote it")
	}
	var out []apiserver.RescueEntry
	for _, raw := range p.Entries {
		e, err := apiserver.DecodeRescueEntry(string(raw))
		if err != nil {
			return nil, 0, err
		}
		out = append(out, e)
	}
	return out, p.Seq, nil
}
