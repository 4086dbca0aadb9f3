package sqlite

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestWhatIsInNoHurryWaitsForCompany: as long as nothing comes that is in a
// hurry, and no longer than said.
func TestWhatIsInNoHurryWaitsForCompany(t *testing.T) {
	for _, tc := range []struct {
		name  string
		after []time.Duration // jobs that come, each half of linger after the one before: how patient they are
		first time.Duration   // how patient the first one is
		took  time.Duration
		jobs  int
	}{
		{"in a hurry", nil, 0, 0, 1},
		{"alone", nil, linger, linger, 1},
		{"with others that have time", []time.Duration{linger, linger}, linger, linger, 2},
		{"with one that has none", []time.Duration{0, linger}, linger, linger / 2, 2},
		{"a note", nil, lingerNote, lingerNote, 1},
		{"notes and what waits for less", []time.Duration{lingerNote, linger}, lingerNote, 2 * linger, 3},
		{"what waits for less, and a note", []time.Duration{lingerNote}, linger, linger, 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &DB{queue: make(chan *job, maxWaiting)}
				done := make(chan struct{})
				go func() {
					defer close(done)
					for _, patience := range tc.after {
						<-time.After(linger / 2)
						d.queue <- &job{patience: patience}
					}
				}()
				begin := time.Now()
				batch := d.gather([]*job{{patience: tc.first}})
				if took := time.Since(begin); took != tc.took || len(batch) < tc.jobs || len(batch) > tc.jobs+1 {
					t.Errorf("%d jobs after %s", len(batch), took)
				}
				<-done
			})
		})
	}
}

func TestJobsThatWaitAreTakenTogether(t *testing.T) {
	d := &DB{queue: make(chan *job, maxWaiting)}
	for range maxBatch + 5 {
		d.queue <- &job{patience: linger}
	}
	if n := len(d.gather([]*job{<-d.queue})); n != maxBatch {
		t.Errorf("%d jobs", n)
	}
	close(d.queue)
	if n := len(d.gather([]*job{<-d.queue})); n != 5 {
		t.Errorf("%d jobs at the end", n)
	}
}

func TestEnoughJobsDoNotWaitForMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &DB{queue: make(chan *job, maxWaiting)}
		for range enough {
			d.queue <- &job{patience: linger}
		}
		begin := time.Now()
		if n := len(d.gather([]*job{<-d.queue})); n != enough || time.Since(begin) != 0 {
			t.Errorf("%d jobs after %s", n, time.Since(begin))
		}
	})
}

// TestNotesDoNotEndAfterAFew: there may be many in a second.
func TestNotesDoNotEndAfterAFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &DB{queue: make(chan *job, maxWaiting)}
		for range 2 * enough {
			d.queue <- &job{patience: lingerNote}
		}
		begin := time.Now()
		if n := len(d.gather([]*job{<-d.queue})); n != 2*enough || time.Since(begin) != lingerNote {
			t.Errorf("%d jobs after %s", n, time.Since(begin))
		}
	})
}
