package civosim

import (
	"net/http"
	"testing"
	"time"

	"github.com/civo/civogo"
	"github.com/stretchr/testify/require"
)

func TestFaultsStrikeBeforeOrAfterTheWork(t *testing.T) {
	for name, tc := range map[string]struct {
		fault Fault
		done  int
		want  error // if nil, any error
		fine  bool
	}{
		"server error":           {fault: ServerError(), want: civogo.InternalServerError},
		"server error afterward": {fault: After(ServerError()), done: 1, want: civogo.InternalServerError},
		"unauthorized":           {fault: Unauthorized(), want: civogo.AuthenticationError},
		"quota":                  {fault: Quota(), want: civogo.QuotaLimitReachedError},
		"page":                   {fault: HTML(http.StatusBadGateway), want: civogo.ResponseDecodeFailedError},
		"page afterward":         {fault: After(HTML(http.StatusOK)), done: 1},
		"cut":                    {fault: Cut()},
		"cut afterward":          {fault: After(Cut()), done: 1},
		"failed":                 {fault: Failed(), fine: true},
		"slow":                   {fault: Slow(time.Millisecond), done: 1, fine: true},
	} {
		t.Run(name, func(t *testing.T) {
			s, c, _ := start(t)
			s.InjectNext(HardReboots, 1, tc.fault)
			answer, err := c.HardRebootInstance("i-1")
			switch {
			case tc.want != nil:
				require.ErrorIs(t, err, tc.want)
			case tc.fine:
				require.NoError(t, err)
				require.Equal(t, tc.done == 1, answer.Result == civogo.ResultSuccess)
			default:
				require.Error(t, err)
			}
			require.Len(t, s.Done(HardReboots), tc.done)
			require.Equal(t, tc.fault.String(), s.CallsTo(HardReboots)[0].Fault)

			_, err = c.HardRebootInstance("i-1")
			require.NoError(t, err, "it was for one call")
		})
	}
}

func TestPanicReasonPanicsCivogo(t *testing.T) {
	s, c, _ := start(t)
	s.Inject(HardReboots, PanicReason(http.StatusBadRequest))
	require.Panics(t, func() { _, _ = c.HardRebootInstance("i-1") })
	s.Heal(HardReboots)
	_, err := c.HardRebootInstance("i-1")
	require.NoError(t, err)
}

func TestListFaultsSpringCivogosTrap(t *testing.T) {
	s, c, _ := start(t)
	s.Inject(ListInstances, Missing("node-1"))
	found, err := c.FindKubernetesClusterInstance(cluster, "node-1")
	require.NoError(t, err)
	require.Equal(t, "node-10", found.Hostname, "the trap that this fault is for")

	s.Heal()
	s.Inject(ListInstances, Twice("node-1"))
	list, err := c.ListKubernetesClusterInstances(cluster)
	require.NoError(t, err)
	require.Len(t, list, 4)
	require.Equal(t, "node-1", list[3].Hostname)
	require.NotEqual(t, "i-1", list[3].ID)
}

func TestHangEndsWithTheSimulator(t *testing.T) {
	s, c, _ := start(t)
	s.Inject(HardReboots, After(Hang()))
	failed := make(chan error, 1)
	go func() {
		_, err := c.HardRebootInstance("i-1")
		failed <- err
	}()
	call, err := s.AwaitCall(t.Context(), func(c Call) bool { return c.Done == "hard reboot i-1" })
	require.NoError(t, err)
	require.Zero(t, call.Status, "it is not answered yet")
	s.Close()
	require.Error(t, <-failed)
	require.Equal(t, NoAnswer, s.Calls()[0].Status)
}

func TestOnRebootRunsBetweenWorkAndAnswer(t *testing.T) {
	s, c, _ := start(t)
	var seen Call
	s.OnReboot(func() { seen = s.Calls()[0] })
	_, err := c.HardRebootInstance("i-1")
	require.NoError(t, err)
	require.Equal(t, "hard reboot i-1", seen.Done)
	require.Zero(t, seen.Status)
}
