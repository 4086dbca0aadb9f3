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

// checkEvery is how often Files checks the databases. Whoever writes to one notices a
// fault at once.
const checkEvery = time.Second

// checkUntold is how often it does so when the system reports changes of files: it does
// not report all, such as those by another machine.
const checkUntold = 5 * time.Second

// Database is an open database of the directory.
type Database interface {
	Check() *sqlite.Fault
	Fault() *sqlite.Fault
}

// Files knows whether the databases of the directory can be used. The zero value knows
// no database.
type Files struct {
	open   []Database
	broken []*sqlite.Fault // could not be opened: until a restart

	stop  chan struct{}
	ended sync.WaitGroup
}

// Broken notes why databases could not be opened. An error that is no fault of a
// database becomes one of the directory.
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

// NotOpened returns the faults of databases that could not be opened.
func (f *Files) NotOpened() []*sqlite.Fault { return f.broken }

// Watch checks open databases of a directory until Close. It calls changed with the fault
// when one can no longer be used, and with nil when all can be used again.
func (f *Files) Watch(dir string, open []Database, changed func(wrong *sqlite.Fault)) {
	f.open, f.stop = open, make(chan struct{})
	f.ended.Go(func() { f.watch(dir, changed) }) // ends with Close
}

func (f *Files) watch(dir string, changed func(wrong *sqlite.Fault)) {
	reported, end := changes(dir)
	for usable := true; ; {
		wait := checkEvery
		if reported != nil {
			wait = checkUntold
		}
		timer := time.NewTimer(wait)
		select {
		case <-f.stop:
			timer.Stop()
			end()
			return
		case <-timer.C:
		case <-reported:
			timer.Stop()
		}
		wrong, well := f.check()
		switch {
		case well && reported == nil:
			reported, end = changes(dir)
		case !well: // check again soon, and the directory may have been replaced
			end()
			reported, end = nil, func() {}
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

// Faults returns all faults of the databases. With a lasting one there is no memory.
func (f *Files) Faults() []*sqlite.Fault {
	all := f.broken[:len(f.broken):len(f.broken)]
	for _, db := range f.open {
		if t := db.Fault(); t != nil {
			all = append(all, t)
		}
	}
	return all
}
