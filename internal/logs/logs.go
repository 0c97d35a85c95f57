// Package logs makes the log of a program: one line for each event, as JSON or as text.
// docs/reference/logs.md lists the fields of a line.
package logs

import (
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"

	"drydock.dev/drydock/internal/cli"
)

const (
	jsonFormat = "json"
	textFormat = "text"
)

// The level debug has the lines of logr's V(1) to V(4).
var levels = map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "error": slog.LevelError}

// Options are the format and the level of the log.
type Options struct{ format, level string }

// AddTo adds the flags for the options to those of a command.
func (o *Options) AddTo(f *pflag.FlagSet) {
	f.StringVar(&o.format, "log-format", textFormat, "format of the log: json or text")
	f.StringVar(&o.level, "log-level", "info", "lowest level of the lines in the log: debug, info or error")
}

// New returns a logger that writes to w.
func (o Options) New(w io.Writer) (logr.Logger, error) {
	level, known := levels[o.level]
	if !known {
		return logr.Logger{}, cli.Usage(fmt.Errorf("--log-level is %q: write debug, info or error", o.level))
	}
	options := &slog.HandlerOptions{Level: level, ReplaceAttr: nameLevel}
	switch o.format {
	case jsonFormat:
		return logr.FromSlogHandler(slog.NewJSONHandler(w, options)), nil
	case textFormat:
		return logr.FromSlogHandler(slog.NewTextHandler(w, options)), nil
	}
	return logr.Logger{}, cli.Usage(fmt.Errorf("--log-format is %q: write json or text", o.format))
}

// nameLevel gives every level the name that --log-level uses: slog would call logr's V(1)
// "DEBUG+3".
func nameLevel(groups []string, a slog.Attr) slog.Attr {
	level, ok := a.Value.Any().(slog.Level)
	if len(groups) > 0 || a.Key != slog.LevelKey || !ok {
		return a
	}
	if level < slog.LevelInfo {
		level = slog.LevelDebug
	}
	return slog.String(slog.LevelKey, strings.ToLower(level.String()))
}
