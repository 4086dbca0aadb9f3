package graphititest

import (
	"context"
	"regexp"
	"sync"
	"time"
)

// job is a message that was accepted.
type job struct {
	group   string
	uuid    string // of an episode that exists; empty for a new one
	content string // as it is stored
	name    string
	source  string
	validAt time.Time
}

// worker is a stand-in for Graphiti's worker. It begins alive; a dead one stays dead:
//
//	alive ──exception, KillWorker, Restart, Close──► dead
//
// Everything in a dead worker's queue, and added to it, is lost.
type worker struct {
	delay  func(group string) time.Duration
	raises func(group, content string) bool

	survives bool // exceptions

	keep func(job)
	stop chan struct{} // closed when it dies, which ends a delay
	done chan struct{} // closed when its goroutine has ended

	mu      sync.Mutex // guards the rest
	changed *sync.Cond // on any change of it
	waiting []job
	busy    bool
	dead    bool
}

func (s *Server) startWorker() *worker {
	w := &worker{
		delay: s.o.delayOf, raises: s.raises, keep: s.keep,
		stop: make(chan struct{}), done: make(chan struct{}),
	}
	w.changed = sync.NewCond(&w.mu)
	// Ends when the worker dies, at the latest with Close.
	go w.run()
	return w
}

// raises tells the messages that are not kept.
func (s *Server) raises(group, content string) bool {
	_, broken := s.sight()
	return broken != "" || s.o.Raises != nil && s.o.Raises(group, content)
}

func (o *Options) delayOf(group string) time.Duration {
	if o.DelayOf != nil {
		return o.DelayOf(group)
	}
	return o.Delay
}

// put queues jobs. Nobody learns that the worker is dead.
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

// accepted is what Graphiti allows as a group id.
var acceptedID = regexp.MustCompile(`^[a-zA-Z0-9_-]*$`)

// exception tells whether a job raises one. A uuid means an episode that
// exists, and none does that a client could have named.
func (w *worker) exception(j job) bool {
	return !acceptedID.MatchString(j.group) || j.uuid != "" || w.raises != nil && w.raises(j.group, j.content)
}

// take waits for a job. ok is false when the worker is dead.
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

// end kills the worker and waits until it has ended.
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
