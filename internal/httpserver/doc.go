// Package httpserver is an HTTP/1.1 server with limits, so that no client can exhaust its
// resources. It limits open connections, the time for a header and for a body, requests in
// progress, and the memory of request bodies. All ports of Drydock use it, so that a flood on one
// port cannot use up the memory of the process.
//
// If there are too many connections, the server closes one to accept another. It never closes a
// connection while a handler works on its request. It closes a connection whose client has not sent
// its complete header or body, or whose request was refused.
//
// HTTP/2 is off, because one HTTP/2 connection could carry a hundred bodies at the same time. A
// limit on connections would not count them.
package httpserver
