package history

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
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
	blocks []*tsdb.Block
	head   *tsdb.Head
	own    string // where head keeps its chunks
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
	newest := int64(math.MinInt64)
	for _, entry := range entries {
		if _, err := ulid.ParseStrict(entry.Name()); err != nil || !entry.IsDir() {
			continue
		}
		block, err := tsdb.OpenBlock(nil, filepath.Join(dir, entry.Name()), nil, nil)
		if err == nil {
			if err = checkBlock(ctx, block, metrics); err != nil {
				err = errors.Join(err, block.Close())
			}
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			skip(blockSkip(entry.Name(), block, err))
			continue
		}
		f.blocks = append(f.blocks, block)
		newest = max(newest, block.MaxTime())
	}
	slices.SortFunc(f.blocks, func(a, b *tsdb.Block) int { return a.Meta().ULID.Compare(b.Meta().ULID) })
	if _, err := os.Stat(filepath.Join(dir, "wal")); err == nil {
		if err := f.openLog(dir, newest); err != nil {
			skip(Skip{What: "the write-ahead log " + filepath.Join(dir, "wal"), Why: err.Error()})
		}
	}
	if len(f.blocks) == 0 && f.head == nil {
		return nil, fmt.Errorf("opening the TSDB: %s has no readable block and no write-ahead log", dir)
	}
	return f, nil
}

func blockSkip(name string, block *tsdb.Block, err error) Skip {
	out := Skip{What: "block " + name, Why: err.Error()}
	if block != nil {
		out.From, out.Until = time.UnixMilli(block.MinTime()).UTC(), time.UnixMilli(block.MaxTime()).UTC()
	}
	return out
}

// checkBlock reads the chunks of the series once, which compares their checksums.
func checkBlock(ctx context.Context, block *tsdb.Block, metrics []string) error {
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
	var all []storage.Querier
	for _, block := range f.blocks {
		if block.MinTime() > until || block.MaxTime() <= from {
			continue
		}
		one, err := tsdb.NewBlockQuerier(block, from, until)
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

func (f *folder) close() error {
	var errs []error
	for _, block := range f.blocks {
		errs = append(errs, block.Close())
	}
	if f.head != nil {
		errs = append(errs, f.head.Close())
	}
	if f.own != "" {
		errs = append(errs, os.RemoveAll(f.own))
	}
	return errors.Join(errs...)
}
