package hosts

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
)

// A machine that is up accepts a connection within maxConnect, even if the first packet is lost.
const maxConnect = 5 * time.Second

type connection struct {
	ssh.Conn
	address  string
	identity *identity
}

// dial tries the host's addresses in order. The time until ctx's deadline is divided equally among
// the addresses that are left.
func (c *Client) dial(ctx context.Context, h Host) (*connection, error) {
	id, err := readIdentity(c.o.KeyFile, c.o.KnownHostsFile)
	if err != nil {
		return nil, err
	}
	var failed []error
	for i, address := range h.Addresses {
		conn, err := c.dialOne(ctx, h, address, id, len(h.Addresses)-i)
		if err == nil {
			return conn, nil
		}
		failed = append(failed, err)
		if ctx.Err() != nil {
			break
		}
	}
	return nil, together(failed)
}

func (c *Client) dialOne(ctx context.Context, h Host, address string, id *identity, shares int) (*connection, error) {
	if deadline, ok := ctx.Deadline(); ok && shares > 1 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(deadline)/time.Duration(shares))
		defer cancel()
	}
	dialer := net.Dialer{Timeout: maxConnect}
	raw, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(address, strconv.Itoa(c.o.Port)))
	if err != nil {
		return nil, kinded(ErrUnreachable, err, "no connection to %s port %d; check that the machine is up and lets Drydock in", address, c.o.Port)
	}
	// The ssh library takes no context, so the connection is closed when ctx ends.
	stop := context.AfterFunc(ctx, func() { _ = raw.Close() })
	known := id.hosts.of(h, address, c.o.Port)
	var refused error
	conn, channels, requests, err := ssh.NewClientConn(raw, net.JoinHostPort(address, strconv.Itoa(c.o.Port)), &ssh.ClientConfig{
		User: c.o.User, Auth: []ssh.AuthMethod{ssh.PublicKeys(id.signer)}, ClientVersion: "SSH-2.0-drydock",
		HostKeyAlgorithms: known.algorithms(),
		HostKeyCallback: func(_ string, remote net.Addr, key ssh.PublicKey) error {
			refused = known.verify(key, remote)
			return refused
		},
	})
	if !stop() && err == nil { // ctx has ended and closed the connection
		_ = conn.Close()
		err = ctx.Err()
	}
	switch {
	case refused != nil:
		return nil, fmt.Errorf("at %s: %w", address, refused)
	case err == nil:
	case ctx.Err() != nil:
		return nil, kinded(ErrUnreachable, ctx.Err(), "no SSH session with %s port %d in time; check its sshd", address, c.o.Port)
	case strings.Contains(err.Error(), "unable to authenticate"): // the library has no error type for this
		return nil, kinded(errDenied, nil, "at %s: sshd refuses user %q with the key %s; check that the user's authorized_keys has it", address, c.o.User, fingerprint(id.signer.PublicKey()))
	default:
		return nil, kinded(ErrUnreachable, err, "no SSH session with %s port %d; check its sshd", address, c.o.Port)
	}
	go ssh.DiscardRequests(requests)
	go func() {
		for ch := range channels {
			_ = ch.Reject(ssh.Prohibited, "nothing is served here")
		}
	}()
	return &connection{Conn: conn, address: address, identity: id}, nil
}

func together(failed []error) error {
	if len(failed) == 1 {
		return failed[0]
	}
	texts := make([]string, len(failed))
	for i, err := range failed {
		texts[i] = err.Error()
	}
	return &kindError{kind: errors.Join(failed...), text: strings.Join(texts, "; ")}
}
