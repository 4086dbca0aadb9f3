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
		after []bool // jobs that come, each half of linger after the one before: whether they are patient
		first bool   // whether the first one is patient
		took  time.Duration
		jobs  int
	}{
		{"in a hurry", nil, false, 0, 1},
		{"alone", nil, true, linger, 1},
		{"with others that have time", []bool{true, true}, true, linger, 2},
		{"with one that has none", []bool{false, true}, true, linger / 2, 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &DB{queue: make(chan *job, maxWaiting)}
				done := make(chan struct{})
				go func() {
					defer close(done)
					for _, patient := range tc.after {
						<-time.After(linger / 2)
						d.queue <- &job{patient: patient}
					}
				}()
				begin := time.Now()
				batch := d.gather([]*job{{patient: tc.first}})
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
		d.queue <- &job{patient: true}
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
			d.queue <- &job{patient: true}
		}
		begin := time.Now()
		if n := len(d.gather([]*job{<-d.queue})); n != enough || time.Since(begin) != 0 {
			t.Errorf("%d jobs after %s", n, time.Since(begin))
		}
	})
}
