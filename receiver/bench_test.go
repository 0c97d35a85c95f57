package receiver

import (
	"context"
	"fmt"
	"net/http"
	"syscall"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations/intake"
)

// BenchmarkPost compares the handler with a bare gin handler that only decodes the same body. The
// difference is the cost of the limits, of the authentication and of the hand-over. The Recorder
// costs nothing here.
func BenchmarkPost(b *testing.B) {
	accept := RecorderFunc(func(context.Context, alert) (intake.Result, error) { return intake.Accepted, nil })
	s := newServer(b, Options{TokenFile: write(b, "token", secret), Recorder: accept})
	gin.SetMode(gin.ReleaseMode)
	bare := gin.New()
	bare.POST("/v1/alerts", func(c *gin.Context) {
		var p struct {
			Version string `json:"version"`
			Alerts  []struct {
				Status       string            `json:"status"`
				Labels       map[string]string `json:"labels"`
				Annotations  map[string]string `json:"annotations"`
				StartsAt     time.Time         `json:"startsAt"`
				EndsAt       time.Time         `json:"endsAt"`
				GeneratorURL string            `json:"generatorURL"`
			} `json:"alerts"`
		}
		if err := c.ShouldBindJSON(&p); err != nil {
			c.Status(http.StatusBadRequest)
			return
		}
		c.JSON(http.StatusOK, gin.H{"accepted": len(p.Alerts), "ignored": 0})
	})
	for _, n := range []int{1, 10, 500} {
		body := group(n)
		for name, engine := range map[string]*gin.Engine{"receiver": s.engine, "bare": bare} {
			b.Run(fmt.Sprintf("%s/alerts=%d", name, n), func(b *testing.B) {
				b.ReportAllocs()
				b.SetBytes(int64(len(body)))
				began := spent(b)
				for b.Loop() {
					w := do(&Server{engine: engine}, request("POST", "/v1/alerts", body))
					require.Equal(b, 200, w.Code)
				}
				b.ReportMetric(float64(spent(b)-began)/float64(b.N), "cpu-ns/op")
			})
		}
	}
}

// spent returns the processor time of this process. Unlike the wall clock, it hardly depends on
// other load.
func spent(b *testing.B) time.Duration {
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
