package sidecar

import (
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
	promconfig "github.com/prometheus/common/config"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"
	kubefake "k8s.io/client-go/kubernetes/fake"

	"drydock.dev/drydock/remediations/providers/sidecar/settings"
)

func TestNewNamesTheOptionThatIsWrong(t *testing.T) {
	taken := prometheus.NewRegistry()
	taken.MustRegister(prometheus.NewCounter(prometheus.CounterOpts{Name: "drydock_sidecar_probes_total", Help: "Another."}))
	for name, tc := range map[string]struct {
		adjust func(*Options)
		text   string
	}{
		"fine": {func(*Options) {}, ""},
		"no approval by task": {func(o *Options) {
			o.Via, o.ApproveMethod, o.ApprovePath, o.ApproveCodes = settings.ViaSeiNodeTask, "", "", nil
		}, ""},
		"no name":           {func(o *Options) { o.Name = "" }, "the name is empty"},
		"no selector":       {func(o *Options) { o.Selector = nil }, "selects every pod"},
		"every pod":         {func(o *Options) { o.Selector = labels.Everything() }, "selects every pod"},
		"no scheme":         {func(o *Options) { o.Scheme = "" }, "neither http nor https"},
		"odd scheme":        {func(o *Options) { o.Scheme = "http://x@" }, "neither http nor https"},
		"not a port":        {func(o *Options) { o.Port = "" }, `the port ""`},
		"port 0":            {func(o *Options) { o.Port = "0" }, `the port "0"`},
		"large port":        {func(o *Options) { o.Port = "65536" }, `the port "65536"`},
		"odd port":          {func(o *Options) { o.Port = "80/x" }, `the port "80/x"`},
		"no health path":    {func(o *Options) { o.HealthPath = "" }, "the health path"},
		"path of a host":    {func(o *Options) { o.HealthPath = ".evil/x" }, "the health path"},
		"path of a user":    {func(o *Options) { o.HealthPath = "@evil/x" }, "the health path"},
		"path of a line":    {func(o *Options) { o.HealthPath = "/x\r\ny" }, "the health path"},
		"fragment":          {func(o *Options) { o.HealthPath = "/x#y" }, "the health path"},
		"approve path":      {func(o *Options) { o.ApprovePath = "x" }, "the approve path"},
		"method":            {func(o *Options) { o.ApproveMethod = "POST /x" }, "the approve method"},
		"no method":         {func(o *Options) { o.ApproveMethod = "" }, "the approve method"},
		"no code":           {func(o *Options) { o.ApproveCodes = nil }, "accepted approval"},
		"code":              {func(o *Options) { o.ApproveCodes = []int{200, 100} }, "accepted approval"},
		"codes alike":       {func(o *Options) { o.ReadyCode = 503 }, "two different"},
		"no ready code":     {func(o *Options) { o.ReadyCode = 0 }, "two different"},
		"no not-ready code": {func(o *Options) { o.NotReadyCode = 1000 }, "two different"},
		"health timeout":    {func(o *Options) { o.HealthTimeout = -time.Second }, "negative"},
		"approve timeout":   {func(o *Options) { o.ApproveTimeout = -time.Second }, "negative"},
		"owner":             {func(o *Options) { o.Owner = "node" }, "the owner"},
		"via":               {func(o *Options) { o.Via = "" }, "the via"},
		"task of nobody":    {func(o *Options) { o.Via, o.Owner = settings.ViaSeiNodeTask, "" }, "needs the owner"},
		"namespace":         {func(o *Options) { o.Namespaces = []string{"a", "B"} }, `"B" is not a namespace's name`},
		"no client":         {func(o *Options) { o.Client = nil }, "the client"},
		"no clock":          {func(o *Options) { o.Now = nil }, "the clock"},
		"no dynamic client": {func(o *Options) { o.Dynamic = nil }, "reads SeiNodes"},
		"authority":         {func(o *Options) { o.Scheme, o.TLS = "https", promconfig.TLSConfig{CAFile: "/nowhere/ca"} }, "/nowhere/ca"},
		"metric":            {func(o *Options) { o.Registerer = taken }, "drydock_sidecar_probes_total"},
	} {
		t.Run(name, func(t *testing.T) {
			s := closed(t)
			o := options()
			o.Client, o.Dynamic = kubefake.NewClientset(), s.dyn
			tc.adjust(&o)
			_, err := New(o)
			if tc.text == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, "configuring the sidecar provider")
			require.ErrorContains(t, err, tc.text)
		})
	}
}

func FuzzAnswerText(f *testing.F) {
	for _, seed := range []string{
		"", "no", `{"error":"no"}`, `{"message":"no"}`, `{"error":1}`, "null", "[]", "<html>\n", "\x00\x1b[31m\u202e\u2028", strings.Repeat("é", 300), "x" + strings.Repeat("é", 300),
		`{"error":"` + token + `"}`, `{"error":"\u0000\n` + strings.Repeat("x", 190) + token, "\xff\xfe" + token,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		known := newTokens()
		known.Add(token)
		got := answerText(known, body)
		require.True(t, utf8.ValidString(got))
		require.LessOrEqual(t, len(got), maxText+len("..."))
		require.NotContains(t, got, token)
		for _, r := range got {
			require.True(t, unicode.IsGraphic(r) && (r == ' ' || !unicode.IsSpace(r)), "%q", got)
		}
	})
}
