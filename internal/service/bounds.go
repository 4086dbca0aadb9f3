package service

import (
	"bufio"
	"errors"
	"fmt"
	"io"
)

const (
	maxItem     = 32 << 20  // bytes of a line, or of an export's conversation in the file
	maxExport   = 2 << 30   // bytes of a file, or of an unpacked archive
	maxMessages = 2_000_000 // in a file; RAM holds a hash of each
)

var (
	errItem   = fmt.Errorf("it is larger than %d MiB", maxItem>>20)
	errExport = fmt.Errorf("the file contains more than %d GiB; import it in parts", maxExport>>30)
)

// bounded reads a file up to a limit, and fails beyond it, so that an endless line or
// conversation does not fill RAM.
type bounded struct {
	r    io.Reader
	read int64
	end  int64 // end of the current item
	most int64
}

// item begins an item at an offset in the file.
func (b *bounded) item(at int64) { b.end = at + maxItem }

func (b *bounded) Read(p []byte) (int, error) {
	end, err := b.most, errExport
	if b.end < end {
		end, err = b.end, errItem
	}
	if left := end - b.read; int64(len(p)) > left {
		p = p[:max(left, 0)]
	}
	if len(p) == 0 {
		return 0, err
	}
	n, err := b.r.Read(p)
	b.read += int64(n)
	return n, err
}

// lineOf reads a line. The result is valid until the next call.
func lineOf(in *bufio.Reader, before []byte) (line []byte, err error) {
	line = before[:0]
	for {
		part, err := in.ReadSlice('\n')
		if len(line)+len(part) > maxItem {
			return nil, errItem
		}
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}
