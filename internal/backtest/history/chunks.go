package history

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/prompb"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
)

// maxFrame is how large a frame of an answer may be. Prometheus' are 1 MiB where nobody has set --storage.remote.read-max-bytes-in-frame.
const maxFrame = 64 << 20

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// readChunks reads an answer that is a stream of frames, each with chunks of one series: the length of the message as a uvarint, its
// checksum, the message. A series with many chunks has several frames, one after the other.
func readChunks(body io.Reader, drop string) (out []storage.Series, err error) {
	in := bufio.NewReaderSize(body, 64<<10)
	builder := labels.NewScratchBuilder(16)
	var last *chunkSeries
	var frame []byte
	for {
		if frame, err = readFrame(in, frame); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return nil, err
		}
		var answer prompb.ChunkedReadResponse
		if err := answer.Unmarshal(frame); err != nil {
			return nil, err
		}
		for _, s := range answer.ChunkedSeries {
			lset := labelsOf(&builder, s.Labels, drop)
			if last == nil || !labels.Equal(last.labels, lset) {
				last = &chunkSeries{labels: lset}
				out = append(out, last)
			}
			for _, c := range s.Chunks {
				one, err := chunkenc.FromData(chunkenc.Encoding(c.Type), c.Data)
				if err != nil {
					return nil, fmt.Errorf("reading %s: %w", lset, err)
				}
				last.chunks = append(last.chunks, one)
			}
		}
	}
}

// readFrame reads a message into buffer, if it is large enough. The error is io.EOF after the last one.
func readFrame(in *bufio.Reader, buffer []byte) ([]byte, error) {
	size, err := binary.ReadUvarint(in)
	if err != nil {
		return nil, err
	}
	if size > maxFrame {
		return nil, fmt.Errorf("a frame of the answer has %d bytes: at most %d are read", size, maxFrame)
	}
	var sum [crc32.Size]byte
	if _, err := io.ReadFull(in, sum[:]); err != nil {
		return nil, unfinished(err)
	}
	if uint64(cap(buffer)) < size {
		buffer = make([]byte, size)
	}
	buffer = buffer[:size]
	if _, err := io.ReadFull(in, buffer); err != nil {
		return nil, unfinished(err)
	}
	if crc32.Checksum(buffer, castagnoli) != binary.BigEndian.Uint32(sum[:]) {
		return nil, errors.New("a frame of the answer is damaged: its checksum is another one")
	}
	return buffer, nil
}

// unfinished is the error of an answer that ends within a frame.
func unfinished(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// chunkSeries is a series as the server stores it.
type chunkSeries struct {
	labels labels.Labels
	chunks []chunkenc.Iterable
}

func (s *chunkSeries) Labels() labels.Labels { return s.labels }

func (s *chunkSeries) Iterator(again chunkenc.Iterator) chunkenc.Iterator {
	return storage.ChainSampleIteratorFromIterables(again, s.chunks)
}
