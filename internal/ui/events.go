package ui

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"drydock.dev/drydock/internal/text"
)

const (
	// gather is how long changes are collected into one event.
	gather = 100 * time.Millisecond
	// breathe is the interval of comments that keep a quiet stream open.
	breathe = 15 * time.Second
	// writeFor bounds one write. A browser that does not read is then disconnected.
	writeFor = 20 * time.Second
)

// change is one event for the page's script. Nodes, Force and Connection are for every page.
type change struct {
	Nodes []string `json:"nodes,omitempty"`
	// Force reports that facts about the whole fleet have changed.
	Force bool `json:"force,omitempty"`
	// Connection is set only if it has changed.
	Connection *connectionNews `json:"connection,omitempty"`
	// Density is the size of the tiles. A page with another size is loaded again.
	Density string `json:"density,omitempty"`
	// Tiles, Gone and Parts are for the Fleet page. Parts has HTML by element ids.
	Tiles []changedTile     `json:"tiles,omitempty"`
	Gone  []string          `json:"gone,omitempty"`
	Parts map[string]string `json:"parts,omitempty"`
}

type changedTile struct {
	Node  string `json:"node"`
	State State  `json:"state"`
	Group string `json:"group"`
	// HTML is the tile as shown on the page.
	HTML string `json:"html"`
}

type connectionNews struct {
	State string `json:"state"`
	HTML  string `json:"html"`
}

// version identifies the state of a page: the ID of this process, and the number of the last change
// that the page shows.
func (u *UI) version(number uint64) string { return u.epoch + "-" + strconv.FormatUint(number, 10) }

func (u *UI) number(version string) (uint64, bool) {
	text, ours := strings.CutPrefix(version, u.epoch+"-")
	number, err := strconv.ParseUint(text, 10, 64)
	return number, ours && err == nil
}

// events is a stream of server-sent events with the changes that the page does not have yet.
func (u *UI) events(w http.ResponseWriter, r *http.Request) {
	since := r.Header.Get("Last-Event-ID")
	if since == "" {
		since = r.URL.Query().Get("since")
	}
	out := stream{w: w, control: http.NewResponseController(w)}
	w.Header().Set("Content-Type", "text/event-stream")
	fleet := r.URL.Query().Get("page") == "fleet"
	number, known := u.number(since)
	if !known {
		_ = out.send("reload", "", []byte("{}"))
		return
	}
	if out.send("", "", nil) != nil {
		return
	}
	for {
		n, bell := u.fleet.after(number)
		if !n.empty() {
			number = n.number
			data, err := u.encode(n, fleet)
			if err != nil {
				u.Log.Error(err, "a change could not be sent to a page")
				return
			}
			if out.send("change", u.version(number), data) != nil {
				return
			}
		}
		select {
		case <-r.Context().Done():
			return
		case <-u.done:
			return
		case <-bell:
			select {
			case <-u.done:
				return
			case <-u.After(gather):
			}
		case <-u.After(breathe):
			if out.send("", "", nil) != nil {
				return
			}
		}
	}
}

func (u *UI) encode(n news, fleet bool) ([]byte, error) {
	c := change{Force: n.force, Nodes: slices.Clone(n.gone)}
	var page fleetPage
	form := "tile"
	if fleet {
		page = u.fleet.page(u.Reader.Now())
		c.Density = page.Density()
	}
	if page.Square() {
		form = "square"
	}
	for _, t := range n.tiles {
		c.Nodes = append(c.Nodes, t.Node)
		if !fleet {
			continue
		}
		html, err := u.fragment(form, t)
		if err != nil {
			return nil, err
		}
		c.Tiles = append(c.Tiles, changedTile{Node: t.Node, State: t.State, Group: t.Group(), HTML: html})
	}
	if n.connection != nil {
		html, err := u.fragment("connection", *n.connection)
		if err != nil {
			return nil, err
		}
		c.Connection = &connectionNews{State: n.connection.State(), HTML: html}
	}
	if fleet {
		c.Gone, c.Parts = n.gone, map[string]string{}
		for _, part := range parts {
			html, err := u.fragment(part, page)
			if err != nil {
				return nil, err
			}
			c.Parts[part] = html
		}
	}
	data, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("encoding a change: %w", err)
	}
	var safe bytes.Buffer
	_, err = text.JSONWriter{Out: &safe}.Write(data)
	return safe.Bytes(), err
}

var parts = []string{"force", "counts", "concern"}

type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

// Without an event, send writes a comment, which only keeps the connection open.
func (s stream) send(event, id string, data []byte) error {
	_ = s.control.SetWriteDeadline(time.Now().Add(writeFor)) //nolint:forbidigo // deadlines of connections use the machine's own clock
	var b bytes.Buffer
	if event == "" {
		b.WriteString(":\n\n")
	} else {
		fmt.Fprintf(&b, "event: %s\n", event)
		if id != "" {
			fmt.Fprintf(&b, "id: %s\n", id)
		}
		fmt.Fprintf(&b, "data: %s\n\n", data) // JSON has no line breaks
	}
	if _, err := s.w.Write(b.Bytes()); err != nil {
		return fmt.Errorf("writing to the browser: %w", err)
	}
	return s.control.Flush() //nolint:wrapcheck // the caller only ends the stream
}
