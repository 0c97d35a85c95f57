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

// An answer other than 200: its code, and a sentence for people.
type refusal struct {
	code     int
	sentence string
}

func refuse(code int, format string, args ...any) *refusal {
	return &refusal{code: code, sentence: fmt.Sprintf(format, args...)}
}

// gin must not log: its logger prints whole requests, and its debug mode prints the routes.
func (s *Server) routes() *gin.Engine {
	gin.SetMode(gin.ReleaseMode)
	e := gin.New()
	e.HandleMethodNotAllowed = true
	e.RedirectTrailingSlash = false
	e.Use(s.countAnswer, s.answerPanic)
	e.NoRoute(func(c *gin.Context) {
		answer(c, refuse(http.StatusNotFound, "this path does not exist; post alerts to /v1/alerts"))
	})
	e.NoMethod(func(c *gin.Context) {
		answer(c, refuse(http.StatusMethodNotAllowed, "this path accepts only POST"))
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
			answer(c, refuse(http.StatusInternalServerError, "the receiver has an internal fault; Drydock's log has the details"))
		}
	}()
	c.Next()
}

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

// receive checks the sender first, then the content type and the size, and only then reads the
// alerts. It returns nil after it has answered 200.
func (s *Server) receive(c *gin.Context) *refusal {
	if s.token != nil {
		err := s.token.check(c.Request.Header, s.log)
		if errors.Is(err, errNoToken) { // Alertmanager sends the post again after 503, never after 401
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
		return refuse(http.StatusServiceUnavailable, "the receiver is handling %d posts, the most at the same time; post again later", maxPosts)
	}
	// The place is one of maxPosts. Until the dispatch begins, this function frees it. After that
	// the dispatch does, when the Recorder has returned for every alert, which may be after the
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
	// The end of the request's context must not cancel the writes. In a storm of alerts,
	// Alertmanager gives up a post after 10 s, but the API server completes a write even if its
	// client is gone. If the writes were cancelled, each new post would start more writes and
	// cancel them, too. So each started write runs to its end, within its usual time limit. When
	// Alertmanager repeats the post, the alert is already written.
	t := s.dispatch(context.WithoutCancel(c.Request.Context()), p.alerts, giveBack)
	if t.failed > 0 {
		return s.later(p, t)
	}
	c.JSON(http.StatusOK, gin.H{"accepted": t.accepted, "ignored": t.ignored + len(p.unusable)})
	return nil
}

// acquire reserves one of the maxPosts places. It waits for at most timeouts.place, and then
// returns false. So a storm of small posts is served in turn. A waiting post has no body in memory
// yet.
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
		return refuse(http.StatusUnsupportedMediaType, "the Content-Type must be application/json")
	}
	if coding := h.Get("Content-Encoding"); coding != "" && coding != "identity" {
		return refuse(http.StatusUnsupportedMediaType, "the body must have no Content-Encoding")
	}
	return nil
}

// release frees the memory reserved for the body and its alerts.
func (s *Server) read(c *gin.Context) (body []byte, release func(), r *refusal) {
	body, release, err := s.bodies.Read(c.Writer, c.Request)
	switch {
	case errors.Is(err, httpserver.ErrTooLong):
		return nil, nil, s.oversized("the body is longer than %d bytes (receiver.maxBodyBytes); set group_by: [alertname, cluster, node] on Alertmanager's route", s.options.MaxBodyBytes)
	case errors.Is(err, httpserver.ErrTooMuch):
		return nil, nil, s.oversized("the body has more labels and alerts than the receiver's memory limit allows; set group_by: [alertname, cluster, node] on Alertmanager's route")
	case errors.Is(err, httpserver.ErrBusy):
		return nil, nil, refuse(http.StatusServiceUnavailable, "other posts use all the memory for bodies; post again later")
	case err != nil:
		return nil, nil, refuse(http.StatusBadRequest, "the body did not arrive completely within %s", text.Duration(s.timeouts.read))
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

// The Recorder does not receive the unusable alerts, and those that Alertmanager left out.
func (s *Server) note(p post) {
	s.metrics.alerts.WithLabelValues(string(intake.NoTarget)).Add(float64(len(p.unusable)))
	if len(p.unusable) > 0 {
		s.log.Info("Drydock ignores unusable alerts of a post", "alerts", len(p.unusable), "why", p.unusable[0], "group", short(p.groupKey))
	}
	if p.truncated == 0 {
		return
	}
	s.log.Info("Alertmanager left alerts out of a post; set max_alerts to 0 in the webhook_configs of Alertmanager's receiver", "alerts", p.truncated, "receiver", short(p.receiver), "group", short(p.groupKey))
	if s.options.Truncated != nil {
		s.options.Truncated(p.truncated)
	}
}

// The answer to a post with usable alerts that were not accepted.
func (s *Server) later(p post, t tally) *refusal {
	s.log.Error(t.firstErr, "alerts of a post were not accepted; Alertmanager sends the post again", "alerts", t.failed, "of", len(p.alerts), "group", short(p.groupKey))
	if t.panicked > 0 {
		return refuse(http.StatusInternalServerError, "%d of %d alerts were not accepted, because of an internal fault of the receiver; Drydock's log has the details", t.failed, len(p.alerts))
	}
	return refuse(http.StatusServiceUnavailable, "%d of %d alerts were not accepted within %s, the others were; post again later", t.failed, len(p.alerts), text.Duration(s.timeouts.dispatch))
}

func short(s string) string { return text.Line(s, 200) }
