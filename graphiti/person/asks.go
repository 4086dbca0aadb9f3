// Package person owns how people speak of themselves: what they ask about
// themselves, what they say of themselves, and which rules they lay down. It
// knows seven languages by tables of phrases.
//
// It must not know where anything is kept. Of our packages it may import
// graphiti/strength and internal/fence.
package person

import (
	"slices"
	"strings"
)

// language is how one asks about oneself in a language.
type language struct {
	name   string
	mine   string // possessives, before what is somebody's
	about  string // beginnings of words for what persons have and like
	phrase string // words beside each other, separated by bars
}

// languages tell when a question is about the person who asks it.
var languages = []language{
	{"English", "my mine",
		"prefer favorite favourite terminolog nickname birthday hobby hobbies allerg",
		"about me|who am i|do i like|i like|i usually|i call|i mean by|i live|i work|am i|did i tell|remember me|my name|have i"},
	{"German", "mein meine meinem meinen meiner meines",
		"bevorzug lieblings vorlieb geburtstag hobby spitzname",
		"über mich|wer bin ich|mag ich|ich mag|ich meine mit|ich wohne|ich arbeite|bin ich|habe ich|ich nenne"},
	{"French", "mon ma mes",
		"préfér prefer favori surnom anniversaire loisir allergi",
		"sur moi|qui suis|j'aime|est-ce que j|j'habite|je travaille|je préfère|ai-je|suis-je"},
	{"Spanish", "mi mis mío mía",
		"prefer favorit apodo cumpleaños afición alergi",
		"sobre mí|quién soy|me gusta|yo llamo|vivo en|trabajo en|prefiero"},
	{"Italian", "mio mia miei mie",
		"preferi preferit soprannome compleanno passatemp allergi",
		"su di me|chi sono|mi piace|abito a|lavoro a"},
	{"Portuguese", "meu minha meus minhas",
		"prefer favorit apelido aniversário alergi",
		"sobre mim|quem sou|eu gosto|moro em|trabalho em"},
	{"Dutch", "mijn",
		"voorkeur lievelings favoriet bijnaam verjaardag allergi",
		"over mij|wie ben ik|ik hou van|ik woon|ik werk"},
}

// notPersonal are things that are called one's own while one works on them.
const notPersonal = "code function method class file files test tests branch repo repository project build pr commit change changes diff script query app api server database table error bug code projekt datei fonction fichier código proyecto archivo progetto codice função arquivo bestand"

// maxAsked is how much of a question is looked at, in bytes.
const maxAsked = 2048

// Asks reports whether a question is about the one who asks it: then
// what is known of the person matters beside what is known of the project.
func Asks(text []byte) bool {
	text = text[:min(len(text), maxAsked)]
	words := strings.FieldsFunc(strings.ToLower(string(text)), between)
	joined := " " + strings.ReplaceAll(strings.Join(words, " "), "’", "'") + " "
	for i := range languages {
		l := &languages[i]
		for p := range strings.SplitSeq(l.phrase, "|") {
			if strings.Contains(joined, " "+p) {
				return true
			}
		}
		mine, about := strings.Fields(l.mine), strings.Fields(l.about)
		for n, w := range words {
			if slices.ContainsFunc(about, func(a string) bool { return strings.HasPrefix(w, a) }) {
				return true
			}
			if slices.Contains(mine, w) && n+1 < len(words) && !slices.Contains(strings.Fields(notPersonal), words[n+1]) {
				return true
			}
		}
	}
	return false
}
