// Package ui is the page that `kubectl drydock ui` serves on the user's own machine, with the user's own rights: what Drydock does,
// and why it waits. It watches the Nodes and the ledger, and sends each open page what changes.
//
// Whoever opens the page acts with the rights of the user who started the command. So the door ([UI.ServeHTTP]) lets in only who has
// the token that the command printed, and only pages of its own may ask. Everything on a page may have been written by anybody who
// can write a label or an alert: templates escape it, and no character that does not show leaves the server.
package ui
