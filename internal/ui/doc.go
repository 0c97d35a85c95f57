// Package ui is the page that `kubectl drydock ui` serves on the user's own machine, with the
// user's own rights. It shows what Drydock does, and why it waits. It watches the Nodes and the
// ledger, and sends changes to each page that is open in a browser.
//
// A person who opens the page acts with the rights of the user who started the command. So
// [UI.ServeHTTP] requires the token that the command printed, and accepts requests only from its
// own pages. Any user who can write a label or an alert can put text on a page: templates escape
// it, and no invisible character leaves the server.
package ui
