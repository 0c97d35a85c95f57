package bounded

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

// TestAnAnswerBeyondALimitFailsAndOneWithinItPasses: each limit, exactly.
func TestAnAnswerBeyondALimitFailsAndOneWithinItPasses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		limits       Limits
		within, over string
		want         string
	}{
		"bytes":             {Limits{Bytes: 8}, `[1,2,34]`, `[1,2,345]`, "the answer is longer than 8 bytes"},
		"values":            {Limits{Values: 4}, `[1,2,{}]`, `[1,2,{},4]`, "the answer has more than 4 values"},
		"objects":           {Limits{Objects: 2}, `[{"a":{}}]`, `[{"a":{}},{}]`, "the answer has more than 2 objects"},
		"depth":             {Limits{Depth: 3}, `[[[]],[[]]]`, `[[[[]]]]`, "the answer is nested more than 3 deep"},
		"text is no value":  {Limits{Values: 2, Depth: 2}, `["{[,\"{[,","\\"]`, `["\\",1,2]`, "the answer has more than 2 values"},
		"bytes of each":     {Limits{Each: Each{Depth: 1, Bytes: 7}}, `[{"a":1},{"b":2}]`, `[{"a":1},{"b":222}]`, "an element of the answer is longer than 7 bytes"},
		"values of each":    {Limits{Each: Each{Depth: 1, Values: 2}}, `[[1,2],[3,4]]`, `[[1,2],[3,4,5]]`, "an element of the answer has more than 2 values"},
		"each, deeper":      {Limits{Each: Each{Depth: 2, Values: 2}}, `{"items":[[1,2],[3,4]]}`, `{"items":[[1,2,3]]}`, "an element of the answer has more than 2 values"},
		"space before each": {Limits{Each: Each{Depth: 1, Bytes: 7}}, `[      1,      2]`, `[        1]`, "an element of the answer is longer than 7 bytes"},
		"an endless name":   {Limits{Each: Each{Depth: 2, Bytes: 7}}, `{"1234":[]}`, `{"1234567`, "an element of the answer is longer than 7 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, chunked := range []func(io.Reader) io.Reader{func(r io.Reader) io.Reader { return r }, iotest.OneByteReader} {
				read, err := c.limits.ReadAll(t.Context(), chunked(strings.NewReader(c.within)))
				require.NoError(t, err, "the control")
				require.Equal(t, c.within, string(read))
				r := c.limits.Reader(t.Context(), chunked(strings.NewReader(c.over)))
				_, err = io.ReadAll(r)
				require.EqualError(t, err, c.want)
				require.ErrorIs(t, err, ErrTooLarge)
				_, again := r.Read(make([]byte, 8))
				require.Equal(t, err, again, "it stays failed")
			}
		})
	}
}

// TestAnAnswerIsReadNoLongerThanItsRequestLasts: after the end of the context, data that has
// already arrived is not returned either.
func TestAnAnswerIsReadNoLongerThanItsRequestLasts(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	r := Limits{}.Reader(ctx, strings.NewReader("[1,2]"))
	n, err := r.Read(make([]byte, 2))
	require.NoError(t, err, "the control")
	require.Equal(t, 2, n)
	cancel()
	_, err = r.Read(make([]byte, 2))
	require.ErrorIs(t, err, context.Canceled)
}

// FuzzReader: the reader returns the same bytes, however they are cut into pieces, and counts like
// a decoder.
func FuzzReader(f *testing.F) {
	for _, seed := range []string{`[]`, `{"a":[1,"\"",{"b":null}],"c":{}}`, `"\\\"{"`, `[[[[1,2],3],4],5]`, `{"a":`, ` 1 `, "\x00["} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		whole := &reader{ctx: t.Context(), from: bytes.NewReader(text)}
		read, err := io.ReadAll(whole)
		require.NoError(t, err)
		require.Equal(t, text, append([]byte{}, read...))
		piecewise := &reader{ctx: t.Context(), from: iotest.OneByteReader(bytes.NewReader(text))}
		_, err = io.ReadAll(piecewise)
		require.NoError(t, err)
		require.Equal(t, []int{whole.values, whole.objects, whole.depth}, []int{piecewise.values, piecewise.objects, piecewise.depth})
		if !json.Valid(text) {
			return
		}
		values, objects, depth := counted(t, text)
		require.Equal(t, []int{values, objects, 0}, []int{whole.values, whole.objects, whole.depth})
		within := Limits{Bytes: int64(len(text)), Values: values, Objects: objects, Depth: depth}
		_, err = within.ReadAll(t.Context(), bytes.NewReader(text))
		require.NoError(t, err)
		for _, over := range []Limits{{Bytes: int64(len(text)) - 1}, {Values: values - 1}, {Objects: objects - 1}, {Depth: depth - 1}} {
			if over == (Limits{}) || over.Bytes < 0 || over.Values < 0 || over.Objects < 0 || over.Depth < 0 {
				continue // there is none, or no limit below it
			}
			_, err = over.ReadAll(t.Context(), bytes.NewReader(text))
			require.ErrorIs(t, err, ErrTooLarge)
		}
	})
}

// counted counts with a decoder: a value at its bracket, or at the comma before it.
func counted(t *testing.T, text []byte) (values, objects, deepest int) {
	d := json.NewDecoder(bytes.NewReader(text))
	var open []int // the number of tokens in each open bracket
	var list []bool
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return values, objects, deepest
		}
		require.NoError(t, err)
		closes := token == json.Delim('}') || token == json.Delim(']')
		if n := len(open); n > 0 && !closes {
			if isName := !list[n-1] && open[n-1]%2 == 1; open[n-1] > 0 && !isName {
				values++ // after a comma
			}
			open[n-1]++
		}
		switch {
		case closes:
			open, list = open[:len(open)-1], list[:len(list)-1]
		case token == json.Delim('{') || token == json.Delim('['):
			values++
			if token == json.Delim('{') {
				objects++
			}
			open, list = append(open, 0), append(list, token == json.Delim('['))
			deepest = max(deepest, len(open))
		}
	}
}
