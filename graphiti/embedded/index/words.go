package index

import (
	"strings"
	"unicode"
)

// Words returns the first max words of a text, each once, without those that
// say nothing. They hold letters and digits only.
func Words(text string, max int) []string {
	seen := make(map[string]bool)
	var out []string
	for _, w := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsMark(r)
	}) {
		if len(w) > 64 || len(w) < 2 && w[0] < 0x80 && (w[0] < '0' || w[0] > '9') || stopWords[w] || seen[w] {
			continue
		}
		seen[w] = true
		if out = append(out, w); len(out) == max {
			break
		}
	}
	return out
}

// stopWords say nothing about what is meant: English, German, French, Spanish.
var stopWords = func() map[string]bool {
	m := make(map[string]bool)
	for _, w := range strings.Fields(`
		a about after again all also am an and any are as at be because been before being but by can could did do does
		doing don down for from had has have he her here hers him his how i if in into is it its just know let like me
		more most my no not now of off on once only or other our out over own please said same say she should so some
		such tell than that the their them then there these they this those through to too under until up us very was
		we were what when where which while who whom why will with would you your s t ll re ve
		der die das den dem des ein eine einen einem einer und oder aber ist sind war wie was wer wo wann warum ich du
		er sie es wir ihr mein meine dein deine nicht mit von zu im auf für
		le la les un une des et ou est sont je tu il elle nous vous mon ma mes ton ta quel quelle que qui où comment
		pas avec pour dans sur du de
		el los las una y o es son yo tú él mi mis tu tus qué cuál quién dónde cómo no con por para en del al`) {
		m[w] = true
	}
	return m
}()
