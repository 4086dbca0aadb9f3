package inject

import (
	"regexp"
	"strings"
)

// overriding matches attempts to make a model abandon its instructions. They have no
// legitimate use in a fact.
var overriding = []*regexp.Regexp{
	regexp.MustCompile(`(?i)\b(ignore|disregard|forget|override)\b.{0,40}\b(previous|prior|above|earlier|all|any|your|the system)\b.{0,40}\b(instruction|prompt|rule|message|guideline)`),
	regexp.MustCompile(`(?i)\b(system|developer) (prompt|message|instruction)s?\b`),
	regexp.MustCompile(`(?i)\bjailbreak|\bDAN mode\b|\bdo anything now\b`),
	regexp.MustCompile(`(?i)\b(ignoriere|vergiss|missachte)\b.{0,40}\b(anweisung|vorgabe|regel)`),
	regexp.MustCompile(`(?i)\b(ignore[zr]?|oublie[zr]?)\b.{0,40}\b(instruction|consigne|règle)`),
	regexp.MustCompile(`(?i)\b(ignora|olvida|descarta)\b.{0,40}\b(instrucci|regla|istruzion)`),
}

// directing matches instructions to a model. A fact that reads like one is an injection
// attempt, or a wish and not a fact.
var directing = []*regexp.Regexp{
	regexp.MustCompile(`(?i)^(you (must|should|will|shall|are now)|always|never|do not|don't|from now on|act as|pretend|respond|reply|answer|output|print|execute|run|reveal|send|delete)\b`),
	regexp.MustCompile(`(?i)\b(the )?(assistant|model|ai|llm|chatbot|agent) (must|should|shall|has to|needs to|is to|will always|will never)\b`),
}

// triggers is a fast path: every text that the expressions match contains one of these.
var triggers = []string{
	"instru", "istruz", "prompt", "messag", "rule", "guideline", "you ", "must", "should", "shall", "has to", "needs to", "is to", "will ",
	"always", "never", "do not", "don't", "from now", "act as", "pretend", "respond", "reply", "answer", "output", "print", "execute", "run",
	"reveal", "send", "delete", "jailbreak", "dan mode", "do anything", "anweisung", "vorgabe", "regel", "consigne", "règle", "regla",
}

// Instructs reports whether a text reads like an instruction to a model.
func Instructs(text string) bool { return matches(text, overriding, directing) }

// Overrides reports whether a text asks a model to abandon its instructions. Standing text
// may direct a model but not override its instructions.
func Overrides(text string) bool { return matches(text, overriding) }

func matches(line string, lists ...[]*regexp.Regexp) bool {
	lower, may := strings.ToLower(line), false
	for _, t := range triggers {
		if strings.Contains(lower, t) {
			may = true
			break
		}
	}
	if !may {
		return false
	}
	for _, list := range lists {
		for _, r := range list {
			if r.MatchString(line) {
				return true
			}
		}
	}
	return false
}
