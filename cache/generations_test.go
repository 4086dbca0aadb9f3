package cache

import (
	"path/filepath"
	"testing"
)

// TestGenerations checks that generations survive a restart and that a group stays blocked
// until all of its forgets have ended.
func TestGenerations(t *testing.T) {
	path := t.TempDir() + "/state.db"
	for name, open := range map[string]func() *State{
		"file": func() *State { return openState(t, path) },
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			group := Forget{Group: "g", Scope: "g"}
			session := Forget{Group: "g", Scope: "talk:1:", Session: "session:1", Owner: "user:o", Emptied: true}
			message := Forget{Group: "g", Scope: "message:1:g", Message: "1"}
			var raised, ended Forget
			raise := func(f Forget) func(*Generations) error {
				return func(g *Generations) (err error) { raised, err = g.Raise(ctx, f); return err }
			}
			end := func(f *Forget) func(*Generations) error {
				return func(g *Generations) error { return g.End(ctx, *f) }
			}
			var last int64
			for i, step := range []struct {
				do   func(*Generations) error
				want bool
			}{
				{func(*Generations) error { return nil }, false},
				{raise(session), true},
				{raise(group), true},
				{func(g *Generations) error { ended = raised; ended.Scope = session.Scope; return g.End(ctx, ended) }, true},
				{raise(session), true},
				{func(g *Generations) error { ended = raised; return raise(session)(g) }, true},
				{end(&ended), true},  // raised again since
				{raise(group), true}, // includes the session
				{end(&raised), false},
				{raise(message), true},
				{end(&raised), false},
			} {
				s := open()
				if err := step.do(s.Generations); err != nil {
					t.Fatal(i, err)
				}
				here, number := s.Generations.Blocks("g"), s.Generations.Now()
				must(t, s.Close())
				s = open()
				if after := s.Generations.Blocks("g"); here != step.want || after != step.want || s.Generations.Blocks("h") {
					t.Errorf("step %d: group g is blocked: %v, and after a restart %v, want %v; group h: %v, want false", i, here, after, step.want, s.Generations.Blocks("h"))
				}
				if after := s.Generations.Now(); i > 0 && (after != number || after < last) {
					t.Errorf("step %d: the number is %d, and %d after a restart; want the same, and at least %d", i, number, after, last)
				}
				for _, f := range s.Generations.UnderWay() {
					want := map[string]Forget{"g": group, "talk:1:": session, "message:1:g": message}[f.Scope]
					if want.Generation = f.Generation; f != want || f.Generation == 0 {
						t.Errorf("step %d: under way is %+v, want %+v with a generation", i, f, want)
					}
				}
				last = number
				must(t, s.Close())
			}
		})
	}
}

// TestNumberOfARepairedFile checks that a process continues from the generation it has seen
// if the state file no longer holds one.
func TestNumberOfARepairedFile(t *testing.T) {
	s := openState(t, filepath.Join(t.TempDir(), "state.db"))
	defer s.Close()
	f := Forget{Group: "g", Scope: "g"}
	for _, want := range []int64{2, 3} {
		if f, err := s.Generations.Raise(t.Context(), f); err != nil || f.Generation != want {
			t.Errorf("generation %d, %v; want %d", f.Generation, err, want)
		}
		must(t, s.tables.write(t.Context(), &record{kind: generationKind, key: []byte(generationKey)}))
	}
}
