package alertmanager

import (
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/config"
	"github.com/stretchr/testify/require"
)

func TestNewRefusesFaultyOptions(t *testing.T) {
	valid := []string{"http://am:9093"}
	twice := prometheus.NewRegistry()
	twice.MustRegister(newUpMetric().gauge)
	cases := map[string]struct {
		options Options
		want    string
	}{
		"no URL":               {Options{}, "give at least one and at most"},
		"too many URLs":        {Options{URLs: make([]string, maxReplicas+1)}, "at most 64"},
		"no scheme":            {Options{URLs: []string{"am:9093"}}, "URL 1 of Alertmanager: it must begin with http"},
		"no host":              {Options{URLs: []string{"http://:9093"}}, "it names no host"},
		"a query":              {Options{URLs: []string{"http://am?x=1"}}, "has a query"},
		"not ASCII":            {Options{URLs: []string{"http://ämm"}}, "not ASCII"},
		"unreadable":           {Options{URLs: []string{"http://am", "http://me:se cret@am"}}, "URL 2 of Alertmanager: it is not a URL"},
		"the same twice":       {Options{URLs: []string{"http://am", "http://AM:80/"}}, "given twice"},
		"two credentials":      {Options{URLs: []string{"http://me:secret@am"}, HTTPConfig: config.HTTPClientConfig{BasicAuth: &config.BasicAuth{Username: "u"}}}, "remove one of them"},
		"a negative timeout":   {Options{URLs: valid, Timeout: -1}, "must be positive"},
		"a matcher that isn't": {Options{URLs: valid, Watchdog: "alertname"}, `reading watchdog: parsing the matchers "alertname"`},
		"a matcher of all":     {Options{URLs: valid, BlindWhen: []string{"a=b", "{}"}}, `reading blindWhen[1]: "{}" has no matcher`},
		"an empty blindWhen":   {Options{URLs: valid, BlindWhen: []string{""}}, "no matcher"},
		"two ways in":          {Options{URLs: valid, HTTPConfig: config.HTTPClientConfig{BearerToken: "a", BearerTokenFile: "b"}}, "reading the HTTP configuration"},
		"no CA file":           {Options{URLs: valid, HTTPConfig: config.HTTPClientConfig{TLSConfig: config.TLSConfig{CAFile: "/nowhere/ca.pem"}}}, "/nowhere/ca.pem"},
		"a metric twice":       {Options{URLs: valid, Registerer: twice}, "registering the metric drydock_alertmanager_up"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := New(tc.options)
			require.ErrorContains(t, err, tc.want)
			require.NotContains(t, err.Error(), "secret")
			require.NotContains(t, err.Error(), "se cret")
		})
	}
}

func TestErrorsHideCredentials(t *testing.T) {
	asked := make(chan *http.Request, 1)
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked <- r
		w.WriteHeader(http.StatusForbidden)
	})
	t.Setenv("DEBUG", "1") // the generated client's own switch for dumping requests
	withUser := strings.Replace(url, "http://", "http://me:hunter2@", 1)
	registry := prometheus.NewRegistry()
	r := only(t, Options{URLs: []string{withUser}, Registerer: registry})
	require.ErrorContains(t, r.Err, "asking Alertmanager "+url+": it answered 403 Forbidden")
	require.NotContains(t, r.Err.Error(), "hunter2")
	require.NotContains(t, r.Err.Error(), "me:")
	user, password, _ := (<-asked).BasicAuth()
	require.Equal(t, "me hunter2", user+" "+password)
	families, err := registry.Gather()
	require.NoError(t, err)
	require.NotContains(t, families[0].String(), "hunter2")

	refused := strings.Replace(withUser, ":"+portOf(t, url), ":1", 1)
	require.NotContains(t, only(t, Options{URLs: []string{refused}}).Err.Error(), "hunter2")

	cfg := config.HTTPClientConfig{Authorization: &config.Authorization{Type: "Bearer", Credentials: "hunter2"}}
	r = only(t, Options{URLs: []string{url}, HTTPConfig: cfg})
	require.Error(t, r.Err)
	require.NotContains(t, r.Err.Error(), "hunter2")
	require.Equal(t, "Bearer hunter2", (<-asked).Header.Get("Authorization"))
}
