package datadir

import (
	"errors"
	"sync"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/sqlite"
)

// unusable is the kind of a fault in the directory itself.
const unusable sqlite.Kind = "cannot be used"

// fault is an error of the directory itself.
func fault(dir string, err error) *sqlite.Fault {
	return &sqlite.Fault{
		Path: dir, Kind: unusable, Since: time.Now(), Err: err,
		Remedy: "choose another with data_dir, or make it readable and writable for the proxy's user, and restart the proxy",
	}
}

// checkEvery is how often Files looks at the databases. Who writes to one
// notices a fault at once.
const checkEvery = time.Second

// checkUntold is how often it does where the system says what happens to them:
// it does not say everything, such as what another machine does.
const checkUntold = 5 * time.Second

// Database is a file of the directory that can be looked at.
type Database interface {
	Check() *sqlite.Fault
	Fault() *sqlite.Fault
}

// Files knows whether the databases of the directory can be used. The zero
// value knows of none.
type Files struct {
	open   []Database
	broken []*sqlite.Fault // could not be opened: until a restart

	stop  chan struct{}
	ended sync.WaitGroup
}

// Broken notes that a database could not be opened, and why. An error that is
// of none is of the directory.
func (f *Files) Broken(dir string, errs ...error) {
	for _, err := range errs {
		t := &sqlite.Fault{}
		if !errors.As(err, &t) {
			t = fault(dir, err)
		}
		at := *t
		at.Since = time.Now()
		f.broken = append(f.broken, &at)
	}
}

// NotOpened are the databases that could not be opened.
func (f *Files) NotOpened() []*sqlite.Fault { return f.broken }

// Watch looks at open databases of a directory until Close, and calls changed when
// one of them cannot be used any more, and with nil when all can again.
func (f *Files) Watch(dir string, open []Database, changed func(wrong *sqlite.Fault)) {
	f.open, f.stop = open, make(chan struct{})
	f.ended.Go(func() { f.watch(dir, changed) }) // ends with Close
}

func (f *Files) watch(dir string, changed func(wrong *sqlite.Fault)) {
	told, end := changes(dir)
	for usable := true; ; {
		wait := checkEvery
		if told != nil {
			wait = checkUntold
		}
		timer := time.NewTimer(wait)
		select {
		case <-f.stop:
			timer.Stop()
			end()
			return
		case <-timer.C:
		case <-told:
			timer.Stop()
		}
		wrong, well := f.check()
		switch {
		case well && told == nil:
			told, end = changes(dir)
		case !well: // it is tried again soon, and another directory may take the place of this one
			end()
			told, end = nil, func() {}
		}
		if usable != (wrong == nil) {
			usable = wrong == nil
			changed(wrong)
		}
	}
}

// check returns what is wrong for good, and whether nothing is wrong at all.
func (f *Files) check() (wrong *sqlite.Fault, well bool) {
	well = true
	for _, db := range f.open {
		t := db.Check()
		well = well && t == nil
		if t.Lasting() && wrong == nil {
			wrong = t
		}
	}
	return wrong, well
}

// Close ends Watch.
func (f *Files) Close() {
	close(f.stop)
	f.ended.Wait()
}

// Faults are all that is wrong with the databases. A lasting one means that
// there is no memory.
func (f *Files) Faults() []*sqlite.Fault {
	all := f.broken[:len(f.broken):len(f.broken)]
	for _, db := range f.open {
		if t := db.Fault(); t != nil {
			all = append(all, t)
		}
	}
	return all
}
