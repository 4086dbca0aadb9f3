package embedded

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
)

// routineRequests are requests of everyday work, which no memory answers. Models of
// embeddings differ in the likeness of unrelated texts, and so do memories. A question finds
// a statement only if it is nearer to it than each of these requests, and than most of the
// other statements are to them.
var routineRequests = []string{
	"run the tests", "why is this so slow?", "what did you just change?", "go on", "fix the typo in the header", "can you split this function?",
	"is that our bug or theirs?", "commit and push", "how do I run only one test?", "rename it to something better", "do we still need this file?",
	"write a haiku about autumn", "what is the capital of Peru?", "explain this error", "shorter please", "thanks, looks good",
	"mach weiter", "warum läuft das zweimal?", "kannst du das kürzer schreiben?", "pourquoi ce test échoue ?", "relance les tests", "¿por qué falla esto?",
	"roda os testes de novo", "次お願いします", "なぜ失敗したの？", "帮我看看这个错误", "테스트 다시 돌려줘", "почему тест падает?",
}

// complaints are complaints about everyday work. Some have the mark of a rule: "always".
var complaints = []string{"the same story as always with this, try again", "immer dasselbe damit, schau mal", "toujours pareil avec ça, regarde"}

// A short text whose likeness to a routine request is at least routineFrom is one too. Only
// results of at least the strength sureOfRoutine are worth showing for it.
const (
	longestRoutine = 80 // bytes
	routineFrom    = 0.5
	sureOfRoutine  = 0.5
)

// routineLikeness returns the likenesses of a text to the nearest routine request and to the
// nearest complaint, by the model of this program; 0 without the model.
func (e *Store) routineLikeness(ctx context.Context, text string) (request, complaint float64) {
	if !e.ownModel() {
		return 0, 0
	}
	vec, err := e.mean.question(ctx, text)
	if err != nil {
		return 0, 0
	}
	return nearestOf(e.mean.encoder.routine, vec), nearestOf(e.mean.complaints, vec)
}

// ownModel reports whether the model of this program measures meaning.
func (e *Store) ownModel() bool { return e.mean != nil && e.mean.floor > 0 && !e.mean.paused.Load() }

// unlessRoutine returns the hits without routine requests of another time; none if the
// question itself is a routine request, and no hit is sure to answer it.
func (e *Store) unlessRoutine(ctx context.Context, g *groupIndex, q *asked, hits []*hit) ([]*hit, error) {
	if len(hits) == 0 || !e.ownModel() {
		return hits, nil
	}
	sure := slices.ContainsFunc(hits, func(h *hit) bool { return h.strength >= sureOfRoutine })
	if !sure && len(q.text) <= longestRoutine {
		if like, _ := e.routineLikeness(ctx, q.text); like >= routineFrom {
			return nil, nil
		}
	}
	var out []*hit
	for _, h := range hits {
		like := 0.0
		if h.note.Flags&(isFact|isModels) == 0 && h.note.Length <= longestRoutine {
			var vec []byte
			err := e.db.QueryRow(ctx, "SELECT vec FROM vectors WHERE id = ?", []any{g.groupNumber()<<placeBits | h.place}, &vec)
			if err != nil && !errors.Is(err, sql.ErrNoRows) {
				return nil, fmt.Errorf("read a vector: %w", err)
			}
			like = nearestOf(e.mean.encoder.routine, int8sOf(vec))
		}
		if like < routineFrom {
			out = append(out, h)
		}
	}
	return out, nil
}

// learnRoutine embeds the routine requests once.
func (v *vectors) learnRoutine(ctx context.Context) error {
	v.mu.Lock()
	known := v.routine != nil
	v.mu.Unlock()
	if known {
		return nil
	}
	vecs, err := v.embed(ctx, slices.Clone(routineRequests))
	if err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.routine = vecs
	clear(v.groups)
	v.held = 0
	return nil
}
