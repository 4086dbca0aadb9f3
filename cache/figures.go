package cache

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
)

const (
	// figuresFor is how long the figures of a day are kept.
	figuresFor = 35 * 24 * time.Hour

	// maxOwners bounds the owners whose figures a process counts apart on one day.
	// Those of all others are counted together.
	maxOwners = 500

	// writeEvery is how often figures that have changed are written.
	writeEvery = 5 * time.Second

	// writeWithin bounds a write, and writeAtOnce its records.
	writeWithin = 5 * time.Second
	writeAtOnce = 100
)

// Counts is what memory did on one day.
type Counts struct {
	Requests int64            `json:"requests,omitempty"` // that may have had memory
	Waited   time.Duration    `json:"waited,omitempty"`   // that they waited for memory, all together
	Blocks   int64            `json:"blocks,omitempty"`   // that were shown for the first time
	Chars    int64            `json:"chars,omitempty"`    // of them
	Tokens   int64            `json:"tokens,omitempty"`   // of them, about
	Silent   map[string]int64 `json:"silent,omitempty"`   // turns without a block, by the reason, or by the status where there is none
	Input    int64            `json:"input,omitempty"`    // tokens of requests, as providers said
	Cached   int64            `json:"cached,omitempty"`   // of those, read from prompt caches
}

// add adds what was counted elsewhere.
func (c *Counts) add(o *Counts) {
	c.Requests, c.Waited = c.Requests+o.Requests, c.Waited+o.Waited
	c.Blocks, c.Chars, c.Tokens = c.Blocks+o.Blocks, c.Chars+o.Chars, c.Tokens+o.Tokens
	c.Input, c.Cached = c.Input+o.Input, c.Cached+o.Cached
	for why, n := range o.Silent {
		c.silent(why, n)
	}
}

func (c *Counts) silent(why string, n int64) {
	if c.Silent == nil {
		c.Silent = make(map[string]int64)
	}
	c.Silent[why] += n
}

// Figures counts what memory does, by day (of UTC) and owner: in RAM, and every few
// seconds in the store. Each process has records of its own, with all that it has counted
// so far, so that none overwrites another's. It is safe for concurrent use.
type Figures struct {
	store   store
	process [8]byte // begins the keys of its records

	mu     sync.Mutex // guards what follows
	counts map[asker]*counted
	owners map[ownerDay]*counted

	stop, done chan struct{} // of the goroutine that writes; nil: there is none
}

// asker is who asks on a day: what graphiti.Who.Owner is made of.
type asker struct {
	day                 int64 // since 1970
	tenant, user, actor string
	proven              bool
}

// ownerDay is an owner on a day. An empty owner stands for those beyond maxOwners.
type ownerDay struct {
	day   int64
	owner string
}

// counted is one record, as it will be written.
type counted struct {
	ownerDay
	Counts
	changed bool // since it was written
}

func newFigures(s store) *Figures {
	f := &Figures{store: s, counts: make(map[asker]*counted), owners: make(map[ownerDay]*counted)}
	_, _ = rand.Read(f.process[:]) // never fails
	return f
}

// dayNumber counts days of UTC.
func dayNumber(t time.Time) int64 { return t.Unix() / (24 * 60 * 60) }

// dayList is the name of the list that has a day's records.
func dayList(day int64) string { return time.Unix(day*24*60*60, 0).UTC().Format(time.DateOnly) }

// Asked counts a request that may have had memory, by what was planned for it.
func (f *Figures) Asked(who graphiti.Who, p *inject.Plan) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.ofLocked(&who)
	c.Requests++
	c.Waited += p.Outcome.Took
	switch {
	case !p.Decided: // the turn is counted already, or it is no turn
	case p.Block != "":
		c.Blocks++
		c.Chars += int64(p.Outcome.Chars)
		c.Tokens += int64(inject.Tokens(p.Block))
	case p.Outcome.Reason != inject.ReasonNone:
		c.silent(string(p.Outcome.Reason), 1)
	default:
		c.silent(string(p.Outcome.Status), 1)
	}
}

// Used counts the tokens of a request, as its provider said them.
func (f *Figures) Used(who graphiti.Who, input, cached int) {
	if input <= 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.ofLocked(&who)
	c.Input += int64(input)
	c.Cached += int64(cached)
}

// ofLocked returns the record of somebody for today, which is about to change.
func (f *Figures) ofLocked(who *graphiti.Who) *counted {
	today := dayNumber(time.Now())
	by := asker{today, who.Tenant, who.User, who.SystemActor, who.Proven}
	c := f.counts[by]
	if c == nil {
		c = f.addLocked(by, who.Owner())
	}
	c.changed = true
	return c
}

// addLocked returns the record of an owner, who may ask in several ways.
func (f *Figures) addLocked(by asker, owner string) *counted {
	of := ownerDay{by.day, owner}
	c := f.owners[of]
	if c == nil && len(f.owners) >= maxOwners {
		of.owner = ""
		c = f.owners[of]
	}
	if c == nil {
		c = &counted{ownerDay: of}
		f.owners[of] = c
	}
	if of.owner != "" && len(f.counts) < 4*maxOwners {
		f.counts[by] = c
	}
	return c
}

// Since returns what was counted on each of some days from one on: of an owner, or of
// everybody where that is empty. together says that some owners were counted together,
// and nobody knows how much of that is whose.
func (f *Figures) Since(ctx context.Context, from time.Time, days int, owner string) (all []Counts, together bool, err error) {
	all = make([]Counts, days)
	first, lists := dayNumber(from), make([]string, days)
	at := make(map[string]int, days)
	for i := range lists {
		lists[i] = dayList(first + int64(i))
		at[lists[i]] = i
	}
	meant, rest := digestOf(owner), digestOf("")
	// What is here is newer than what was written of it.
	here := make(map[string]map[string]bool)
	f.mu.Lock()
	for of, c := range f.owners {
		i := of.day - first
		if i < 0 || i >= int64(days) {
			continue
		}
		if here[lists[i]] == nil {
			here[lists[i]] = make(map[string]bool)
		}
		here[lists[i]][string(f.key(of.owner))] = true
		together = together || of.owner == ""
		if owner == "" || of.owner == owner {
			all[i].add(&c.Counts)
		}
	}
	f.mu.Unlock()
	err = f.store.list(ctx, figuresKind, lists, func(list string, key, value []byte) error {
		if len(key) != len(f.process)+len(meant) || here[list][string(key)] {
			return nil
		}
		of := [32]byte(key[len(f.process):])
		together = together || of == rest
		if owner != "" && of != meant {
			return nil
		}
		var c Counts
		if err := json.Unmarshal(value, &c); err != nil {
			return fmt.Errorf("the figures of %s are damaged: %w", list, err)
		}
		all[at[list]].add(&c)
		return nil
	})
	if err != nil {
		return nil, false, fmt.Errorf("read figures: %w", err)
	}
	return all, together, nil
}

// digestOf stands for an owner in keys: nobody's name is in them.
func digestOf(owner string) [32]byte { return graphiti.Digest("figures", owner) }

func (f *Figures) key(owner string) []byte {
	of := digestOf(owner)
	return append(f.process[:len(f.process):len(f.process)], of[:]...)
}

// Start begins to write what is counted. It is called once at most.
func (f *Figures) Start(log *slog.Logger) {
	f.stop, f.done = make(chan struct{}), make(chan struct{})
	// Ends with Close.
	go f.writeLoop(log)
}

// Close writes what was counted since the last time, and ends what writes.
func (f *Figures) Close() {
	if f.stop != nil {
		close(f.stop)
		<-f.done
	}
}

func (f *Figures) writeLoop(log *slog.Logger) {
	defer close(f.done)
	t := time.NewTicker(writeEvery)
	defer t.Stop()
	for failing, ended := false, false; !ended; {
		select {
		case <-f.stop:
			ended = true
		case <-t.C:
		}
		err := f.write()
		if err != nil && (!failing || ended) {
			log.Warn("the figures of the day cannot be written; they are counted on in RAM, and tried again", "error", err)
		}
		failing = err != nil
	}
}

// write writes the records that have changed. What was written of days that are over goes
// from RAM.
func (f *Figures) write() error {
	ctx, cancel := context.WithTimeout(context.Background(), writeWithin)
	defer cancel()
	records, which := f.changed()
	for from := 0; from < len(records); from += writeAtOnce {
		to := min(from+writeAtOnce, len(records))
		if err := f.store.write(ctx, records[from:to]...); err != nil {
			f.mu.Lock()
			for _, c := range which[from:] {
				c.changed = true
			}
			f.mu.Unlock()
			return err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	today := dayNumber(time.Now())
	over := func(day int64, c *counted) bool { return day < today && !c.changed }
	maps.DeleteFunc(f.counts, func(by asker, c *counted) bool { return over(by.day, c) })
	maps.DeleteFunc(f.owners, func(of ownerDay, c *counted) bool { return over(of.day, c) })
	return nil
}

// changed returns the records to write, and marks them as written.
func (f *Figures) changed() (records []*record, which []*counted) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.owners {
		if !c.changed {
			continue
		}
		value, _ := json.Marshal(&c.Counts) // numbers and words of ours
		records = append(records, &record{kind: figuresKind, list: dayList(c.day), key: f.key(c.owner), value: value})
		which, c.changed = append(which, c), false
	}
	return records, which
}
