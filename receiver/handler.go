package receiver

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"drydock.dev/drydock/internal/httpserver"
	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations/intake"
)

// refusal is an answer other than 200: its code, and a sentence for people.
type refusal struct {
	code     int
	sentence string
}

func refuse(code int, format string, args ...any) *refusal {
	return &refusal{code: code, sentence: fmt.Sprintf(format, args...)}
}

// routes returns a router with one path. gin must not log: its logger prints whole requests, and
// its debug mode prints the routes.
func (s *Server) routes() *gin.Engine {
	gin.SetMode(gin.ReleaseMode)
	e := gin.New()
	e.HandleMethodNotAllowed = true
	e.RedirectTrailingSlash = false
	e.Use(s.countAnswer, s.answerPanic)
	e.NoRoute(func(c *gin.Context) {
		answer(c, refuse(http.StatusNotFound, "there is nothing here; alerts are posted to /v1/alerts"))
	})
	e.NoMethod(func(c *gin.Context) {
		answer(c, refuse(http.StatusMethodNotAllowed, "only POST is understood here"))
	})
	e.POST("/v1/alerts", func(c *gin.Context) {
		if r := s.receive(c); r != nil {
			answer(c, r)
		}
	})
	return e
}

func (s *Server) countAnswer(c *gin.Context) {
	c.Next()
	s.metrics.posts.WithLabelValues(strconv.Itoa(c.Writer.Status())).Inc()
}

func (s *Server) answerPanic(c *gin.Context) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		s.log.Error(fmt.Errorf("panic: %v", p), "answering a post panicked", "stack", string(debug.Stack()))
		c.Abort()
		if !c.Writer.Written() {
			answer(c, refuse(http.StatusInternalServerError, "the receiver has a fault; its log says more"))
		}
	}()
	c.Next()
}

// answer writes a refusal.
func answer(c *gin.Context, r *refusal) {
	switch r.code {
	case http.StatusUnauthorized:
		c.Header("WWW-Authenticate", "Bearer")
	case http.StatusServiceUnavailable:
		c.Header("Retry-After", strconv.Itoa(int(retryAfter.Seconds())))
	case http.StatusRequestEntityTooLarge:
		// Without this, net/http reads the rest of the body to use the connection again.
		c.Header("Connection", "close")
	}
	c.JSON(r.code, gin.H{"error": text.Line(r.sentence, maxSentenceBytes)})
}

// receive checks in order: who, what, how much, and only then the alerts. It returns nil after it
// has answered 200.
func (s *Server) receive(c *gin.Context) *refusal {
	if s.token != nil {
		err := s.token.check(c.Request.Header, s.log)
		if errors.Is(err, errNoToken) { // Alertmanager posts again after 503, never after 401
			return refuse(http.StatusServiceUnavailable, "%s; post again later", err)
		}
		if err != nil {
			if s.options.Refused != nil {
				s.options.Refused()
			}
			return refuse(http.StatusUnauthorized, "%s", err)
		}
	}
	if r := checkContent(c.Request.Header); r != nil {
		return r
	}
	if !s.acquire(c.Request.Context()) {
		return refuse(http.StatusServiceUnavailable, "%d posts are under way already; post again later", maxPosts)
	}
	// The last user releases the place: this function, or a Recorder that has not returned at the
	// deadline.
	giveBack := func() { <-s.posts }
	handedOver := false
	defer func() {
		if !handedOver {
			giveBack()
		}
	}()
	body, release, r := s.read(c)
	if r != nil {
		return r
	}
	place := giveBack
	giveBack = func() {
		release()
		place()
	}
	p, r := s.decode(body)
	if r != nil {
		return r
	}
	s.note(p)
	handedOver = true
	// Do not use the request's context: in a storm Alertmanager gives up a post after 10 s. A write
	// that is cut off with the request still runs at the API server. Another write would take its
	// place and be cut off in turn. So each started write is completed, within its usual time, and
	// the repeated post finds it done.
	t := s.dispatch(context.WithoutCancel(c.Request.Context()), p.alerts, giveBack)
	if t.failed > 0 {
		return s.later(p, t)
	}
	c.JSON(http.StatusOK, gin.H{"accepted": t.accepted, "ignored": t.ignored + len(p.unusable)})
	return nil
}

// acquire waits briefly for a place. A storm of small posts is then served in turn, and no
// waiting post holds a body in memory yet.
func (s *Server) acquire(ctx context.Context) bool {
	select {
	case s.posts <- struct{}{}:
		return true
	default:
	}
	patience := time.NewTimer(s.timeouts.place)
	defer patience.Stop()
	select {
	case s.posts <- struct{}{}:
		return true
	case <-patience.C:
	case <-ctx.Done():
	}
	return false
}

func checkContent(h http.Header) *refusal {
	kind, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	if err != nil || kind != "application/json" {
		return refuse(http.StatusUnsupportedMediaType, "the content type has to be application/json")
	}
	if coding := h.Get("Content-Encoding"); coding != "" && coding != "identity" {
		return refuse(http.StatusUnsupportedMediaType, "the body has to come without a content encoding")
	}
	return nil
}

// read returns the body, up to the allowed length. release frees the memory budget of the body and
// its alerts.
func (s *Server) read(c *gin.Context) (body []byte, release func(), r *refusal) {
	body, release, err := s.bodies.Read(c.Writer, c.Request)
	switch {
	case errors.Is(err, httpserver.ErrTooLong):
		return nil, nil, s.oversized("the body is longer than %d bytes (receiver.maxBodyBytes); set group_by: [alertname, cluster, node] on Alertmanager's route", s.options.MaxBodyBytes)
	case errors.Is(err, httpserver.ErrTooMuch):
		return nil, nil, s.oversized("the body has more labels and alerts than fit into the memory; set group_by: [alertname, cluster, node] on Alertmanager's route")
	case errors.Is(err, httpserver.ErrBusy):
		return nil, nil, refuse(http.StatusServiceUnavailable, "other posts occupy the memory for bodies; post again later")
	case err != nil:
		return nil, nil, refuse(http.StatusBadRequest, "the body did not arrive whole within %s", text.Duration(s.timeouts.read))
	}
	return body, release, nil
}

func (s *Server) decode(body []byte) (post, *refusal) {
	p, err := decode(body)
	switch {
	case errors.Is(err, errTooManyAlerts):
		return post{}, s.oversized("%s", err)
	case err != nil:
		return post{}, refuse(http.StatusBadRequest, "%s", err)
	}
	return p, nil
}

func (s *Server) oversized(format string, args ...any) *refusal {
	r := refuse(http.StatusRequestEntityTooLarge, format, args...)
	if s.options.Oversized != nil {
		s.options.Oversized(r.sentence)
	}
	return r
}

// note counts and logs the alerts that no Recorder receives.
func (s *Server) note(p post) {
	s.metrics.alerts.WithLabelValues(string(intake.NoTarget)).Add(float64(len(p.unusable)))
	if len(p.unusable) > 0 {
		s.log.Info("ignoring alerts that cannot be used", "alerts", len(p.unusable), "why", p.unusable[0], "group", short(p.groupKey))
	}
	if p.truncated == 0 {
		return
	}
	s.log.Info("Alertmanager left alerts out of a request; set max_alerts to 0 in the receiver's webhook configuration", "alerts", p.truncated, "receiver", short(p.receiver), "group", short(p.groupKey))
	if s.options.Truncated != nil {
		s.options.Truncated(p.truncated)
	}
}

// later answers a post with a usable alert that was not taken.
func (s *Server) later(p post, t tally) *refusal {
	s.log.Error(t.firstErr, "alerts of a post could not be taken", "alerts", t.failed, "of", len(p.alerts), "group", short(p.groupKey))
	if t.panicked > 0 {
		return refuse(http.StatusInternalServerError, "%d of %d alerts could not be taken, by a fault of the receiver; its log says more", t.failed, len(p.alerts))
	}
	return refuse(http.StatusServiceUnavailable, "%d of %d alerts could not be taken within %s, the others are; post again later", t.failed, len(p.alerts), text.Duration(s.timeouts.dispatch))
}

// short makes text from others fit for a log line.
func short(s string) string { return text.Line(s, 200) }
