package civo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/civo/civogo"

	"drydock.dev/drydock/remediations/providers/kit"
)

type outcome struct {
	answer
	transport error // why there is no complete answer
	err       error // civogo's error, if there was an answer
	panicked  bool  // civogo panicked on the answer
	keyError  error // the API key could not be read, so nothing was sent
	result    civogo.SimpleResponse
}

// call returns soon after ctx ends. g decides right before sending whether the request may be sent,
// and knows whether it was sent. g is nil for a read.
func (c *Client) call(ctx context.Context, g *kit.Gate, use func(*civogo.Client) error) (o outcome) {
	key, err := readKey(c.o.APIKeyFile)
	if err != nil {
		return outcome{keyError: err}
	}
	c.keys.Add(key)
	gw, err := openGateway(ctx, c.o.APIURL, key, g)
	if err != nil {
		return outcome{transport: err}
	}
	defer gw.close()
	api, err := civogo.NewClientWithURL(gw.token, gw.url, c.o.Region)
	if err != nil {
		return outcome{transport: err}
	}
	api.SetUserAgent(&civogo.Component{Name: "drydock", Version: c.o.UserAgentVersion})
	defer func() {
		if reason := recover(); reason != nil {
			o.panicked, o.err = true, fmt.Errorf("civogo panicked: %v", reason)
		}
		o.answer, o.transport = gw.result()
		if errors.Is(o.transport, errUnused) && o.err != nil {
			o.transport = fmt.Errorf("%w: %w", errUnused, o.err)
		}
	}()
	o.err = use(api)
	return o
}

// write releases c.turn, which the caller must hold, when the call has ended. This may be after
// write has returned.
func (c *Client) write(ctx, issue context.Context, t task, may func() error, use func(*civogo.Client) (*civogo.SimpleResponse, error)) error {
	// The call may continue after write has returned. If the request was already sent, cancelling
	// it would not stop Civo. It would only make the outcome unknown.
	run, stop := context.WithCancel(context.WithoutCancel(ctx))
	g := kit.NewGate(issue, may)
	tooLate := context.AfterFunc(issue, func() {
		if g.Withdraw() {
			stop()
		}
	})
	done := make(chan error, 1)
	go func() {
		var result *civogo.SimpleResponse
		o := c.call(run, g, func(api *civogo.Client) (err error) {
			result, err = use(api)
			return err
		})
		if result != nil {
			o.result = *result
		}
		done <- c.writeVerdict(issue, t, g, o)
	}()
	settle := func(err error) error {
		tooLate()
		stop()
		c.giveTurn()
		return err
	}

	wait, cancel := context.WithTimeout(ctx, c.o.Timeout)
	defer cancel()
	select {
	case err := <-done:
		return settle(err)
	case <-wait.Done():
	}
	if g.Withdraw() {
		stop()
		return settle(<-done)
	}
	go c.awaitLate(t, stop, done, settle)
	return c.doubt(t, wait.Err(), "no answer came in time")
}

// awaitLate waits for a call whose write has already returned. After another Options.Timeout it
// cancels the call. It releases c.turn, and passes an answer to Options.Late.
func (c *Client) awaitLate(t task, stop context.CancelFunc, done <-chan error, settle func(error) error) {
	timer := time.NewTimer(c.o.Timeout)
	defer timer.Stop()
	answered := true
	var err error
	select {
	case err = <-done:
	case <-timer.C:
		stop()
		err, answered = <-done, false
	}
	err = settle(err)
	if answered && c.o.Late != nil {
		outcome, why := Outcome(err)
		c.o.Late(t.machine, outcome, why)
	}
}
