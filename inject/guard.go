package inject

import (
	"regexp"
	"slices"
	"strings"
)

// instruction matches one form of instructions. Every text that the expression matches has
// one of the words, which are faster to find.
type instruction struct {
	words []string // lower case; nil if the expression is fast
	*regexp.Regexp
}

func form(expression string, words ...string) instruction {
	return instruction{words, regexp.MustCompile(expression)}
}

// overriding matches attempts to make a model abandon its instructions. They have no
// legitimate use in a fact.
var overriding = []instruction{
	form(`(?i)\b(ignore|disregard|forget|override)\b.{0,40}\b(previous|prior|above|earlier|all|any|your|the system)\b.{0,40}\b(instruction|prompt|rule|message|guideline)`,
		"ignore", "disregard", "forget", "override"),
	form(`(?i)\b(system|developer) (prompt|message|instruction)s?\b`, "system ", "developer "),
	form(`(?i)\bjailbreak|\bDAN mode\b|\bdo anything now\b`, "jailbreak", "dan mode", "do anything now"),
	form(`(?i)\b(ignoriere|vergiss|missachte)\b.{0,40}\b(anweisung|vorgabe|regel)`, "ignoriere", "vergiss", "missachte"),
	form(`(?i)\b(ignore[zr]?|oublie[zr]?)\b.{0,40}\b(instruction|consigne|règle)`, "ignore", "oublie"),
	form(`(?i)\b(ignora|olvida|descarta)\b.{0,40}\b(instrucci|regla|istruzion)`, "ignora", "olvida", "descarta"),
}

// directing matches instructions to a model. A fact that reads like one is an injection
// attempt, or a wish and not a fact.
var directing = []instruction{
	form(`(?i)^(you (must|should|will|shall|are now)|always|never|do not|don't|from now on|act as|pretend|respond|reply|answer|output|print|execute|run|reveal|send|delete)\b`),
	form(`(?i)\b(the )?(assistant|model|ai|llm|chatbot|agent) (must|should|shall|has to|needs to|is to|will always|will never)\b`,
		" must", " should", " shall", " has to", " needs to", " is to", " will "),
}

// Instructs reports whether a text reads like an instruction to a model.
func Instructs(text string) bool { return matches(text, overriding, directing) }

// Overrides reports whether a text asks a model to abandon its instructions. Standing text
// may direct a model but not override its instructions.
func Overrides(text string) bool { return matches(text, overriding) }

func matches(line string, lists ...[]instruction) bool {
	lower := strings.ReplaceAll(strings.ToLower(line), "ſ", "s") // to an expression they are equal
	for _, list := range lists {
		for _, i := range list {
			may := i.words == nil || slices.ContainsFunc(i.words, func(w string) bool { return strings.Contains(lower, w) })
			if may && i.MatchString(line) {
				return true
			}
		}
	}
	return false
}
