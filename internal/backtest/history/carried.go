package history

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Carried is a Past whose reading goes on where another process left it: a file has what was read until then. Its Moments are those of
// all the time, first those of the file. Who decides over them decides over all the time again, and that is why it comes to the same: no
// state of a decision is carried, only what the decisions rest on. Reading takes far longer than deciding.
type Carried struct {
	*Past
	file string
	head header
	old  bool
}

// header is how the file begins.
type header struct {
	// Of is what the moments rest on beside the data, by its name.
	Of          map[string]string
	From, Until time.Time
}

// entry is one of those that follow the header: the moments, and at the end how the reading goes on.
type entry struct {
	Moment *Moment
	End    *readingState
}

// Carry goes on with the state in the file; if there is none, it begins at from. It refuses a state of which something else than of says
// is true, and one that goes beyond until.
func Carry(p *Past, file string, of map[string]string, from, until time.Time) (*Carried, error) {
	c := &Carried{Past: p, file: file, head: header{Of: of, From: from.UTC().Truncate(time.Millisecond)}}
	old, err := openState(file)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return nil, err
	}
	defer old.Close()
	all := maps.Clone(old.head.Of) // what only one of the two rests on is another, too
	maps.Copy(all, of)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if old.head.Of[name] != of[name] {
			return nil, fmt.Errorf("the state in %s was made with another %s: name another file, or delete this one to begin again", file, name)
		}
	}
	if until.Before(old.head.Until) {
		return nil, fmt.Errorf("the state in %s goes to %s: the end must not be before that", file, old.head.Until.Format(time.RFC3339))
	}
	c.head, c.old = old.head, true
	return c, nil
}

// From is when the time begins.
func (c *Carried) From() time.Time { return c.head.From }

// Moments is part of Source. It begins where From says. When all is read, the file has the new state; until then it has the old one.
func (c *Carried) Moments(ctx context.Context, from, until time.Time, yield func(Moment) error) error {
	until = until.UTC().Truncate(time.Millisecond)
	file, err := os.CreateTemp(filepath.Dir(c.file), filepath.Base(c.file)+".")
	if err != nil {
		return fmt.Errorf("writing the state: %w", err)
	}
	defer func() { _ = errors.Join(file.Close(), os.Remove(file.Name())) }() // nothing is there any more if all went well
	packed := gzip.NewWriter(file)
	out := gob.NewEncoder(packed)
	write := func(what any) error {
		if err := out.Encode(what); err != nil {
			return fmt.Errorf("writing the state: %w", err)
		}
		return nil
	}
	begin := from.UTC().Truncate(time.Millisecond)
	next := begin
	if c.old {
		next = c.head.Until
	}
	known, err := c.knownUntil(ctx, next, until)
	if err != nil {
		return err
	}
	if err := write(header{Of: c.head.Of, From: begin, Until: known}); err != nil {
		return err
	}
	each := func(m Moment) error { return errors.Join(write(entry{Moment: &m}), yield(m)) }
	if c.old {
		if err := c.again(ctx, each); err != nil {
			return err
		}
	}
	if next.Before(known) || !c.old {
		if err := c.Past.Moments(ctx, next, known, each); err != nil {
			return err
		}
	}
	end, err := c.save(ctx)
	if err != nil {
		return fmt.Errorf("writing the state: %w", err)
	}
	if err := write(entry{End: end}); err != nil {
		return err
	}
	if known.Before(until) {
		if err := c.Past.Moments(ctx, known, until, yield); err != nil {
			return err
		}
	}
	if err := errors.Join(packed.Close(), file.Sync(), os.Rename(file.Name(), c.file)); err != nil {
		return fmt.Errorf("writing the state: %w", err)
	}
	return nil
}

// knownUntil is where the state ends. That is until, unless the data ended long before it: a snapshot that is made later may have
// what came since, so the next run has to read it.
func (c *Carried) knownUntil(ctx context.Context, from, until time.Time) (time.Time, error) {
	last, err := c.lastShown(ctx, from, until)
	switch {
	case err != nil:
		return time.Time{}, err
	case until.Sub(last) < c.options.Lookback:
		return until, nil
	}
	end := from // nothing is there
	if !last.IsZero() {
		end = last.Add(time.Millisecond)
	}
	if !c.old && !end.After(from) { // a reading is of some time
		end = from.Add(time.Millisecond)
	}
	return end, nil
}

// again gives the moments of the file, and has the reading go on after them.
func (c *Carried) again(ctx context.Context, each func(Moment) error) error {
	old, err := openState(c.file)
	if err != nil {
		return err
	}
	defer old.Close()
	for {
		var e entry
		if err := old.Decode(&e); err != nil {
			return damaged(c.file, err)
		}
		if e.End != nil {
			return c.restore(ctx, e.End, c.head.Until)
		}
		if err := each(*e.Moment); err != nil {
			return err
		}
	}
}

// stateFile is a state that is read.
type stateFile struct {
	io.Closer
	*gob.Decoder
	head header
}

func openState(file string) (*stateFile, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("reading the state: %w", err)
	}
	s := &stateFile{Closer: f}
	plain, err := gzip.NewReader(bufio.NewReader(f))
	if err == nil {
		s.Decoder = gob.NewDecoder(plain)
		err = s.Decode(&s.head)
	}
	if err != nil {
		return nil, errors.Join(damaged(file, err), f.Close())
	}
	return s, nil
}

func damaged(file string, err error) error {
	return fmt.Errorf("%s is no state of a backtest, or it is damaged (%w): name another file, or delete this one to begin again", file, err)
}
