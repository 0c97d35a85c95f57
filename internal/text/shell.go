package text

import "strings"

// shellSafe are the characters without a meaning in any shell.
const shellSafe = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=@"

// maxWord bounds one word of a command.
const maxWord = 8 << 10

// ShellWord returns s as one word of a shell command: the shell interprets nothing in it, and no
// invisible character is copied into a terminal.
func ShellWord(s string) string {
	s = Line(s, maxWord)
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool { return !strings.ContainsRune(shellSafe, r) }) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
