package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"drydock.dev/drydock/internal/cli"
)

const barWidth = 40

type bar struct {
	out   io.Writer
	began time.Time
	now   func() time.Time
}

func (b *bar) show(done, all time.Duration) {
	part := float64(done) / float64(all)
	full := int(part * barWidth)
	_, _ = fmt.Fprintf(b.out, "\r\033[K[%s%s] %.0f %% read%s", strings.Repeat("=", full), strings.Repeat(" ", barWidth-full), 100*part,
		cli.ToGo(part, 1-part, b.now().Sub(b.began)))
}

func (b *bar) end() { _, _ = fmt.Fprint(b.out, "\r\033[K") }
