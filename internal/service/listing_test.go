package service_test

import (
	"context"
	"errors"
	"iter"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/internal/servicetest"
)

// watchedLister calls began at the start of each listing, and counts rows.
type watchedLister struct {
	graphiti.Lister
	began func()
	rows  int
}

func (l *watchedLister) Rows(ctx context.Context, group string, f graphiti.Filter) iter.Seq2[graphiti.Row, error] {
	l.began()
	return func(yield func(graphiti.Row, error) bool) {
		for r, err := range l.Lister.Rows(ctx, group, f) {
			l.rows++
			if !yield(r, err) {
				return
			}
		}
	}
}

// TestListingsLeaveProcessorsForChats: a listing waits while others use half of the processors.
func TestListingsLeaveProcessorsForChats(t *testing.T) {
	m := servicetest.Open(t, t.TempDir(), servicetest.Options{})
	imports(t, m, service.Selector{}, "I met Miriam Weber.", "Miriam Weber called.")
	began, goOn := make(chan struct{}), make(chan struct{})
	m.Backend.Lister = &watchedLister{Lister: m.Backend.Lister, began: func() {
		began <- struct{}{}
		<-goOn
	}}
	list := func(ctx context.Context) error {
		_, err := m.Memory.Catalog(ctx, &service.ListRequest{Limit: 10})
		return err
	}
	var running sync.WaitGroup
	for range max(1, runtime.GOMAXPROCS(0)/2) {
		running.Go(func() {
			if err := list(t.Context()); err != nil {
				t.Error(err)
			}
		})
		<-began
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	ended := make(chan error)
	go func() { ended <- list(ctx) }()
	select {
	case err := <-ended:
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("list while others run: error %v, want the end of its time", err)
		}
	case <-began:
		t.Fatal("another listing began while others use their processors")
	}
	go func() {
		for range began { // of later parts
		}
	}()
	close(goOn)
	running.Wait()
	if err := list(t.Context()); err != nil {
		t.Errorf("list after the others: %v", err)
	}
	close(began)
}

// imports stores a person's texts, a minute apart.
func imports(t testing.TB, m *servicetest.Fixture, s service.Selector, texts ...string) {
	t.Helper()
	var lines []service.Line
	for i, text := range texts {
		lines = append(lines, service.Line{Scope: "user", Role: "user", Content: text, Timestamp: time.Date(2026, 11, 1, 9, i, 0, 0, time.UTC).Format(time.RFC3339)})
	}
	if _, err := m.Memory.Import(t.Context(), &service.ImportRequest{Selector: s, Lines: lines}); err != nil {
		t.Fatal(err)
	}
	m.Settle(t)
}
