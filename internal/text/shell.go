package text

import "strings"

// shellSafe are the characters that have no special meaning in any shell.
const shellSafe = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=@"

// maxWord bounds one word of a command, in bytes.
const maxWord = 8 << 10

// ShellWord returns s quoted as one word of a shell command, so that the shell interprets nothing
// in it. Invisible characters are removed, so that pasting the command into a terminal is safe.
func ShellWord(s string) string {
	s = Line(s, maxWord)
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool { return !strings.ContainsRune(shellSafe, r) }) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
