package embedded

import "context"

// routineRequests are requests of everyday work, not rules.
var routineRequests = []string{
	"run the tests", "why is this so slow?", "what did you just change?", "go on", "fix the typo in the header", "can you split this function?",
	"is that our bug or theirs?", "commit and push", "how do I run only one test?", "rename it to something better", "do we still need this file?",
	"write a haiku about autumn", "what is the capital of Peru?", "explain this error", "shorter please", "thanks, looks good",
	"mach weiter", "warum läuft das zweimal?", "kannst du das kürzer schreiben?", "pourquoi ce test échoue ?", "relance les tests", "¿por qué falla esto?",
	"roda os testes de novo", "次お願いします", "なぜ失敗したの？", "帮我看看这个错误", "테스트 다시 돌려줘", "почему тест падает?",
}

// complaints are complaints about everyday work. Some have the mark of a rule: "always".
var complaints = []string{"the same story as always with this, try again", "immer dasselbe damit, schau mal", "toujours pareil avec ça, regarde"}

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
	return nearestOf(e.mean.routine, vec), nearestOf(e.mean.complaints, vec)
}

// ownModel reports whether the model of this program measures meaning.
func (e *Store) ownModel() bool { return e.mean != nil && e.mean.own && !e.mean.paused.Load() }
