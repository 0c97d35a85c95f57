// Package httpserver is an HTTP/1.1 server with limits, so that no client can exhaust its
// resources. It limits open connections, the time for a header and for a body, requests in
// progress, and the memory of request bodies. All ports of Drydock use it, so that a flood on one
// port cannot use up the memory of the process.
//
// The server may close a connection to make room for another one, but never while a handler works
// on its request. So it may close a connection whose client has not sent its complete header or
// body, and one whose request was refused.
//
// HTTP/2 is off: one connection could carry a hundred bodies at once, which a limit on connections
// would not count.
package httpserver
