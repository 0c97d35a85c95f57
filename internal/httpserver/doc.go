// Package httpserver is an HTTP/1.1 server with bounded costs, whatever strangers send. It bounds
// open connections, the time for a header and for a body, requests in progress, and the memory of
// request bodies. Every port of Drydock uses it, so that a flood of one port cannot take the memory
// of the process or end it.
//
// Work holds a place, not waiting: while a client has not sent its whole header or body, its
// connection may lose its place to another one. A refused request holds none.
//
// HTTP/2 is off: one connection carries a hundred bodies at once, which no limit on connections
// would bound.
package httpserver
