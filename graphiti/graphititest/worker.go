package graphititest

import (
	"context"
	"regexp"
	"sync"
	"time"
)

// job is an accepted message.
type job struct {
	group   string
	uuid    string // of an existing episode, or "" for a new one
	content string // content of the episode
	name    string
	source  string
	validAt time.Time
}

// worker is a stand-in for Graphiti's worker. It starts alive, and a dead worker stays dead:
//
//	alive ──exception, KillWorker, Restart, Close──► dead
//
// All jobs in the queue of a dead worker are lost, and so are later ones.
type worker struct {
	delay  func(group string) time.Duration
	raises func(group, content string) bool

	survives bool // does not die of exceptions

	keep func(job)
	stop chan struct{} // closed when the worker dies; ends a delay
	done chan struct{} // closed when the goroutine has ended

	mu      sync.Mutex // protects the fields below
	changed *sync.Cond // signals their changes
	waiting []job
	busy    bool
	dead    bool
}

func (s *Graphiti) startWorker() *worker {
	w := &worker{
		delay: s.o.delayOf, raises: s.raises, keep: s.keep,
		stop: make(chan struct{}), done: make(chan struct{}),
	}
	w.changed = sync.NewCond(&w.mu)
	// Ends when the worker dies, at the latest in Close.
	go w.run()
	return w
}

// raises reports whether a message raises an exception.
func (s *Graphiti) raises(group, content string) bool {
	broken := s.brokenModel()
	return broken != "" || s.o.Raises != nil && s.o.Raises(group, content)
}

func (o *Options) delayOf(group string) time.Duration {
	if o.DelayOf != nil {
		return o.DelayOf(group)
	}
	return o.Delay
}

// put queues jobs, even if the worker is dead.
func (w *worker) put(jobs []job) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting = append(w.waiting, jobs...)
	w.changed.Broadcast()
}

func (w *worker) run() {
	defer close(w.done)
	for {
		j, ok := w.take()
		if !ok {
			return
		}
		if d := w.delay(j.group); d > 0 {
			t := time.NewTimer(d)
			select {
			case <-t.C:
			case <-w.stop:
				t.Stop()
				return
			}
		}
		switch {
		case !w.exception(j):
			w.keep(j)
		case !w.survives:
			w.die()
			return
		}
	}
}

// acceptedID matches the group IDs that Graphiti accepts.
var acceptedID = regexp.MustCompile(`^[a-zA-Z0-9_-]*$`)

// exception reports whether a job raises an exception. A job with a UUID does: the UUID must
// be that of an existing episode, and clients cannot choose the UUIDs of episodes.
func (w *worker) exception(j job) bool {
	return !acceptedID.MatchString(j.group) || j.uuid != "" || w.raises != nil && w.raises(j.group, j.content)
}

// take waits for a job. ok is false if the worker is dead.
func (w *worker) take() (j job, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.busy = false
	w.changed.Broadcast()
	for len(w.waiting) == 0 && !w.dead {
		w.changed.Wait()
	}
	if w.dead {
		return job{}, false
	}
	j, w.waiting = w.waiting[0], w.waiting[1:]
	w.busy = true
	return j, true
}

func (w *worker) die() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dead {
		return
	}
	w.dead = true
	close(w.stop)
	w.changed.Broadcast()
}

// end kills the worker and waits for its goroutine.
func (w *worker) end() {
	w.die()
	<-w.done
}

func (w *worker) settle(ctx context.Context) error {
	defer context.AfterFunc(ctx, w.wake)()
	w.mu.Lock()
	defer w.mu.Unlock()
	for (len(w.waiting) > 0 || w.busy) && !w.dead && ctx.Err() == nil {
		w.changed.Wait()
	}
	return ctx.Err()
}

func (w *worker) wake() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.changed.Broadcast()
}
