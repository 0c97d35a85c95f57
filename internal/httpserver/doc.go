// Package httpserver is an HTTP/1.1 server with limits, so that no client can exhaust its
// resources. It limits open connections, the time for a header and for a body, requests in
// progress, and the memory of request bodies. All ports of Drydock use it, so that a flood on one
// port cannot use up the memory of the process.
//
// Only work in progress is protected. While a client has not sent its complete header or body, its
// connection may be closed in favour of another one. This is also so for a refused request.
//
// HTTP/2 is off: one connection could carry a hundred bodies at once, which a limit on connections
// would not count.
package httpserver
