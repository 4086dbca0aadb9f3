package service

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/cespare/xxhash/v2"
)

const (
	importLines = maxLines - 1 // in one call, and the other side of a turn
	importBytes = 4 << 20      // of those lines
	maxMessages = 2_000_000    // in a file; RAM holds a hash of each
)

// FileImport is an import of a file, in calls of Import.
type FileImport struct {
	Lines  func(f func(number int, l Line) error) (left int, err error) // calls f for each line, and counts the messages left out
	Call   func(context.Context, ImportRequest) (Imported, error)
	Tell   func(lines int) // receives the number of finished lines
	Distil bool
	Name   string // of the import, for its undo
}

// ImportName returns the name of an import that begins now.
func ImportName() string { return "import-" + time.Now().UTC().Format("20060102-150405") }

// Run sends the lines of a file in order, each batch in one call.
func (im FileImport) Run(ctx context.Context, s Selector) (done Imported, err error) {
	var batch []Line
	bytes := 0
	times := make(map[uint64]int) // number of equal lines so far, by their hash: equal lines get different IDs
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		answer, err := im.Call(ctx, ImportRequest{Selector: s, Lines: batch, Distil: im.Distil, Import: im.Name})
		if err != nil {
			return err
		}
		done.Kept, done.Known, done.NotTaken = done.Kept+answer.Kept, done.Known+answer.Known, done.NotTaken+answer.NotTaken
		done.Waiting, done.Rules = done.Waiting+answer.Waiting, done.Rules+answer.Rules
		done.Full += answer.Full
		done.Undo = cmp.Or(answer.Undo, done.Undo)
		for _, into := range answer.Into {
			if !slices.Contains(done.Into, into) {
				done.Into = append(done.Into, into)
			}
		}
		batch, bytes = batch[:0], 0
		im.Tell(done.Kept + done.Known)
		return nil
	}
	lines := 0
	done.LeftOut, err = im.Lines(func(n int, l Line) error {
		if lines++; lines > maxMessages {
			return fmt.Errorf("the file contains more than %d messages; import it in parts", maxMessages)
		}
		if s.Workspace != "" && (l.Where != "" || l.Group != "") {
			return fmt.Errorf("line %d names its own memory, as the lines of an export do: a workspace has no effect; import the file without --workspace", n)
		}
		b, _ := json.Marshal(l) // strings only
		if len(b) > importBytes {
			return fmt.Errorf("line %d is larger than %d MiB", n, importBytes>>20)
		}
		// Both sides of a turn go in one call.
		whole := len(batch) == 0 || l.turn() == "" || l.turn() != batch[len(batch)-1].turn() || len(batch) > importLines
		if whole && len(batch) >= importLines || bytes+len(b) > importBytes {
			if err := flush(); err != nil {
				return err
			}
		}
		same := xxhash.Sum64(b)
		if n := times[same]; n > 0 {
			l.ID += "#" + strconv.Itoa(n)
		}
		times[same]++
		l.Number = n
		batch, bytes = append(batch, l), bytes+len(b)
		return nil
	})
	if err != nil {
		return done, err
	}
	return done, flush()
}
