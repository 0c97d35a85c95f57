package history

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/tsdb/index"
	"github.com/prometheus/prometheus/tsdb/wlog"
)

// folder is a TSDB folder of Prometheus, only read: the blocks of a snapshot, or a data folder with its write-ahead log.
type folder struct {
	mu     sync.Mutex
	blocks []*block
	head   *tsdb.Head
	own    string // where head keeps its chunks
}

// block is one block of a folder. It is closed when reading has passed it: what is mapped of it counts as memory of this process.
// Until then it stays open, because a running Prometheus may delete it meanwhile.
type block struct {
	*tsdb.Block // nil: it is closed
	dir         string
	meta        tsdb.BlockMeta
}

// openFolder opens what can be opened, and checks what will be read of it: the series of these metrics, all where there
// are none.
func openFolder(ctx context.Context, dir string, metrics []string, skip func(Skip)) (_ *folder, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("opening the TSDB: %w", err)
	}
	f := &folder{}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.close())
		}
	}()
	var skipped strings.Builder
	pass := func(s Skip) {
		_, _ = fmt.Fprintf(&skipped, "; %s: %s", s.What, s.Why)
		skip(s)
	}
	newest := int64(math.MinInt64)
	for _, entry := range entries {
		if _, err := ulid.ParseStrict(entry.Name()); err != nil || !entry.IsDir() {
			continue
		}
		one := &block{dir: filepath.Join(dir, entry.Name())}
		err := one.open()
		if err == nil {
			if err = one.check(ctx, metrics); err != nil {
				err = errors.Join(err, one.close())
			}
		}
		if ctx.Err() != nil {
			return nil, errors.Join(ctx.Err(), one.close())
		}
		if err != nil {
			pass(one.skip(err))
			continue
		}
		f.blocks = append(f.blocks, one)
		newest = max(newest, one.meta.MaxTime)
	}
	slices.SortFunc(f.blocks, func(a, b *block) int { return a.meta.ULID.Compare(b.meta.ULID) })
	if _, err := os.Stat(filepath.Join(dir, "wal")); err == nil {
		if err := f.openLog(dir, newest); err != nil {
			pass(Skip{What: "the write-ahead log " + filepath.Join(dir, "wal"), Why: err.Error()})
		}
	}
	if len(f.blocks) == 0 && f.head == nil {
		return nil, fmt.Errorf("opening the TSDB: %s has no block and no write-ahead log that can be read%.2000s", dir, skipped.String())
	}
	return f, nil
}

func (b *block) open() (err error) {
	if b.Block == nil {
		if b.Block, err = tsdb.OpenBlock(nil, b.dir, nil, nil); err == nil {
			b.meta = b.Meta()
		}
	}
	return err
}

func (b *block) close() error {
	if b.Block == nil {
		return nil
	}
	err := b.Close()
	b.Block = nil
	return err
}

func (b *block) skip(err error) Skip {
	out := Skip{What: "block " + filepath.Base(b.dir), Why: err.Error()}
	if b.meta.Version != 0 {
		out.From, out.Until = time.UnixMilli(b.meta.MinTime).UTC(), time.UnixMilli(b.meta.MaxTime).UTC()
	}
	return out
}

// check reads the chunks of the series once, which compares their checksums. It maps the block a second time: what it reads is no longer
// mapped when it is done.
func (b *block) check(ctx context.Context, metrics []string) (err error) {
	block, err := tsdb.OpenBlock(nil, b.dir, nil, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, block.Close()) }()
	series, err := block.Index()
	if err != nil {
		return err
	}
	defer series.Close()
	samples, err := block.Chunks()
	if err != nil {
		return err
	}
	defer samples.Close()
	name, values := model.MetricNameLabel, metrics
	if len(metrics) == 0 {
		every, value := index.AllPostingsKey()
		name, values = every, []string{value}
	}
	postings, err := series.Postings(ctx, name, values...)
	if err != nil {
		return err
	}
	var builder labels.ScratchBuilder
	var metas []chunks.Meta
	for postings.Next() {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := series.Series(postings.At(), &builder, &metas); err != nil {
			return err
		}
		for _, meta := range metas {
			if _, _, err := samples.ChunkOrIterable(meta); err != nil {
				return err
			}
		}
	}
	return postings.Err()
}

// openLog replays the write-ahead log into memory. Nothing is written to the TSDB: the chunks that Prometheus itself keeps
// beside the log are made again, in a folder of our own.
func (f *folder) openLog(dir string, newest int64) (err error) {
	if f.own, err = os.MkdirTemp("", "drydock-backtest-"); err != nil {
		return err
	}
	log, err := wlog.Open(nil, filepath.Join(dir, "wal"))
	if err != nil {
		return err
	}
	var late *wlog.WL
	if _, err := os.Stat(filepath.Join(dir, wlog.WblDirName)); err == nil {
		if late, err = wlog.Open(nil, filepath.Join(dir, wlog.WblDirName)); err != nil {
			return err
		}
	}
	options := tsdb.DefaultHeadOptions()
	options.ChunkDirRoot = f.own
	head, err := tsdb.NewHead(nil, nil, log, late, options, nil)
	if err != nil {
		return err
	}
	if err := head.Init(newest); err != nil {
		return errors.Join(err, head.Close())
	}
	f.head = head
	return nil
}

func (f *folder) Querier(from, until int64) (storage.Querier, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []storage.Querier
	for _, block := range f.blocks {
		if block.meta.MinTime > until || block.meta.MaxTime <= from {
			continue
		}
		if err := block.open(); err != nil {
			return nil, errors.Join(err, storage.NewMergeQuerier(all, nil, storage.ChainedSeriesMerge).Close())
		}
		one, err := tsdb.NewBlockQuerier(block.Block, from, until)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	if f.head != nil && f.head.MinTime() <= until && f.head.MaxTime() >= from {
		one, err := tsdb.NewBlockQuerier(tsdb.NewRangeHead(f.head, from, until), from, until)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return storage.NewMergeQuerier(all, nil, storage.ChainedSeriesMerge), nil
}

// passed closes the blocks that end before a time. They are opened again if they are read again.
func (f *folder) passed(before int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var errs []error
	for _, block := range f.blocks {
		if block.meta.MaxTime <= before {
			errs = append(errs, block.close())
		}
	}
	return errors.Join(errs...)
}

func (f *folder) close() error {
	errs := []error{f.passed(math.MaxInt64)}
	if f.head != nil {
		errs = append(errs, f.head.Close())
	}
	if f.own != "" {
		errs = append(errs, os.RemoveAll(f.own))
	}
	return errors.Join(errs...)
}
