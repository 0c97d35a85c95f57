// Package httpserver is an HTTP/1.1 server whose cost has a limit, whatever strangers send: open connections, the time for
// a header and for a body, requests in progress, and the memory that request bodies occupy. Every port of Drydock uses it,
// so that nobody who floods one port can take the memory of the process or end it.
//
// A place is held by work and not by time: while a client owes a header or a body, its connection may lose its place to
// another one, and a request that was refused keeps none.
//
// HTTP/2 is off: one of its connections carries a hundred bodies at once, which no limit on connections would bound.
package httpserver
