package ui

import (
	"bytes"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"drydock.dev/drydock/internal/inspect"
	"drydock.dev/drydock/internal/report"
)

type queuePage struct {
	*inspect.Queue
	Now time.Time `json:"now"`

	number uint64
}

func (p queuePage) knownAt() uint64 { return p.number }

func (u *UI) showQueue(w http.ResponseWriter, r *http.Request) {
	number := u.fleet.now()
	q, err := u.Reader.Queue(r.Context())
	if err != nil {
		u.problem(w, r, http.StatusBadGateway, "The queue cannot be read", inspect.Sentence(err))
		return
	}
	u.page(w, r, http.StatusOK, "queue", "Queue", queuePage{q, u.Reader.Now(), number})
}

var reportLengths = []string{"1d", "7d", "30d", "90d"}

// reportPolicy is for the Report page, whose style is inline and which has no script.
const reportPolicy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

func (u *UI) showReport(w http.ResponseWriter, r *http.Request) {
	since := r.URL.Query().Get("since")
	if since == "" {
		since = "7d"
	}
	length, err := model.ParseDuration(since)
	if err != nil || length <= 0 {
		u.problem(w, r, http.StatusBadRequest, "Not a length of time",
			"since is "+plain(since)+"; write how far the report goes back, for example 7d, 36h or 1h30m.")
		return
	}
	in, err := u.Reader.Report(r.Context(), inspect.Scope{}, time.Duration(length))
	if err != nil {
		u.problem(w, r, http.StatusBadGateway, "The report cannot be made", inspect.Sentence(err))
		return
	}
	made := report.New(in)
	var out bytes.Buffer
	if strings.HasSuffix(r.URL.Path, ".json") {
		w.Header().Set("Content-Type", "application/json")
		_ = made.JSON(&out)
		_, _ = w.Write(out.Bytes())
		return
	}
	page := made.Page()
	page.Summary = u.Reader.Cluster.Says(page.Summary)
	page.Links = []report.Link{{Name: "Fleet", Address: u.at("/")}, {Name: "Queue", Address: u.at("/queue")}}
	for _, l := range reportLengths {
		page.Links = append(page.Links, report.Link{Name: "Last " + l, Address: u.at("/report?since=") + l, Here: l == since})
	}
	if err := page.HTML(&out); err != nil {
		u.Log.Error(err, "the report could not be rendered")
		http.Error(w, "the report could not be rendered: "+plain(err.Error()), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Security-Policy", reportPolicy)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(out.Bytes())
}
