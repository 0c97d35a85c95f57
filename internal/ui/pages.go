package ui

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"html"
	"html/template"
	"net/http"
	"net/url"
	"strings"

	"drydock.dev/drydock/internal/inspect"
	"drydock.dev/drydock/internal/text"
)

//go:embed pages/*.html
var pageFiles embed.FS

//go:embed static/*
var staticFiles embed.FS

// parse gives the templates functions that begin every address with door.root.
func (u *UI) parse() (common *template.Template, pages map[string]*template.Template) {
	common = template.Must(template.New("").Funcs(template.FuncMap{
		// line puts a text from the cluster on one line, without control characters.
		"line":     plain,
		"said":     said,
		"changed":  changed,
		"short":    short,
		"at":       u.at,
		"nodePath": func(node string) string { return u.at(nodePath(node)) },
		"nodeJSON": func(node string) string { return u.at("/nodes/" + url.PathEscape(node) + ".json") },
		"wordPath": func(node, word string) string { return u.at("/nodes/" + url.PathEscape(node) + "/words/" + word) },
		"stamp":    inspect.Stamp,
		"states":   func() []Look { return states },
	}).ParseFS(pageFiles, "pages/layout.html", "pages/tile.html", "pages/overview.html"))
	pages = map[string]*template.Template{}
	for _, name := range []string{"fleet", "node", "queue", "problem"} {
		pages[name] = template.Must(template.Must(common.Clone()).ParseFS(pageFiles, "pages/"+name+".html"))
	}
	return common, pages
}

func (u *UI) at(path string) string { return u.door.root + path }

type frame struct {
	Title      string
	Here       string
	Connection connection
	Cluster    inspect.Cluster
	Version    string
	// Token is the value of the header tokenHeader, for writes.
	Token    string
	ReadOnly bool
	Page     any
}

func (u *UI) page(w http.ResponseWriter, r *http.Request, code int, name, title string, facts any) {
	if strings.HasSuffix(r.URL.Path, ".json") {
		u.writeJSON(w, code, facts)
		return
	}
	number := u.fleet.now()
	if p, is := facts.(interface{ knownAt() uint64 }); is {
		number = p.knownAt()
	}
	var out bytes.Buffer
	err := u.templates[name].ExecuteTemplate(&out, "layout", frame{
		Title: title, Here: name, Connection: u.fleet.connected(), Cluster: u.Reader.Cluster, Version: u.version(number), Token: u.door.writing, ReadOnly: u.ReadOnly, Page: facts,
	})
	if err != nil {
		u.Log.Error(err, "a page could not be rendered", "page", name)
		http.Error(w, "this page could not be rendered: "+plain(err.Error()), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write([]byte(u.shown(out.String())))
}

func (u *UI) writeJSON(w http.ResponseWriter, code int, facts any) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetIndent("", "  ")
	if err := e.Encode(facts); err != nil {
		http.Error(w, "the answer could not be encoded as JSON", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	shown := u.Commands.Escaped(out.String(), func(flags string) string {
		quoted, _ := json.Marshal(flags) // encoding a string never fails
		return string(quoted[1 : len(quoted)-1])
	})
	_, _ = text.JSONWriter{Out: w}.Write([]byte(shown))
}

// shown removes invisible characters that a template left, and adds the flags that name the cluster
// to each command.
func (u *UI) shown(page string) string {
	return u.Commands.Escaped(text.Visible(page), html.EscapeString)
}

func (u *UI) fragment(name string, of any) (string, error) {
	var out bytes.Buffer
	if err := u.common.ExecuteTemplate(&out, name, of); err != nil {
		return "", fmt.Errorf("making the fragment %s: %w", name, err)
	}
	return u.shown(out.String()), nil
}

type problem struct {
	Problem string `json:"problem"`
	// Unknown reports that it is unknown whether the change was written.
	Unknown bool `json:"unknown,omitempty"`
}

// refuse says nothing about the cluster.
func (u *UI) refuse(w http.ResponseWriter, r *http.Request, why string) {
	u.problem(w, r, http.StatusForbidden, "Not admitted", why)
}

func (u *UI) problem(w http.ResponseWriter, r *http.Request, code int, title, why string) {
	if strings.HasSuffix(r.URL.Path, ".json") || r.Method == http.MethodPost {
		u.writeJSON(w, code, problem{Problem: why})
		return
	}
	var out bytes.Buffer
	if err := u.templates["problem"].ExecuteTemplate(&out, "problem", struct{ Title, Why string }{title, why}); err != nil {
		http.Error(w, why, code)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write([]byte(u.shown(out.String())))
}

// nodePath puts a slash after a name that ends in .json: without it, the path would ask for JSON.
func nodePath(node string) string {
	path := "/nodes/" + url.PathEscape(node)
	if strings.HasSuffix(node, ".json") {
		path += "/"
	}
	return path
}

func (u *UI) routes() http.Handler {
	mux := http.NewServeMux()
	static := http.FileServerFS(staticFiles)
	mux.Handle("GET /static/", static)
	mux.HandleFunc("GET /{$}", u.showFleet)
	mux.HandleFunc("GET /fleet", u.showFleet)
	mux.HandleFunc("GET /fleet.json", u.showFleet)
	mux.HandleFunc("GET /events", u.events)
	mux.HandleFunc("GET /nodes/{node}", u.showNode)
	mux.HandleFunc("GET /nodes/{node}/{$}", u.showNode)
	mux.HandleFunc("GET /nodes/{node}/words/{word}", u.command)
	mux.HandleFunc("POST /nodes/{node}/words/{word}", u.word)
	mux.HandleFunc("GET /queue", u.showQueue)
	mux.HandleFunc("GET /queue.json", u.showQueue)
	mux.HandleFunc("GET /report", u.showReport)
	mux.HandleFunc("GET /report.json", u.showReport)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		u.problem(w, r, http.StatusNotFound, "No such page", "There is no page at this address.")
	})
	return mux
}

func (u *UI) showFleet(w http.ResponseWriter, r *http.Request) {
	select { // wait for the first data
	case <-u.link.first:
	case <-r.Context().Done():
		return
	}
	u.page(w, r, http.StatusOK, "fleet", "Fleet", u.fleet.page(u.Reader.Now()))
}
