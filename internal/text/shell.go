package text

import "strings"

// shellSafe characters have no special meaning in any shell.
const shellSafe = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=@"

// maxWord is in bytes.
const maxWord = 8 << 10

// ShellWord quotes s as one word of a shell command. It removes invisible characters, so that
// pasting the command into a terminal is safe.
func ShellWord(s string) string {
	s = Line(s, maxWord)
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool { return !strings.ContainsRune(shellSafe, r) }) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
