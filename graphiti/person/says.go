package person

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti/strength"
	"github.com/graphiti-proxy/graphiti-proxy/internal/fence"
)

const (
	maxText      = 8 << 10 // bytes of a message that are looked at: what is longer was pasted
	maxStatement = 240     // bytes of a sentence
	maxSaid      = 8       // sentences of a message
)

// Says are the sentences of a message in which a person says something of
// themselves: what they are, have, like or prefer, and the rules that they lay
// down. Questions, code and quotations say nothing.
func Says(text string) (out []string) {
	for s := range sentences(text) {
		if !speaks(s) {
			continue
		}
		if _, rule := readRule(s); !rule && !ofThemselves(s) {
			continue
		}
		if out = append(out, s); len(out) == maxSaid {
			break
		}
	}
	return out
}

// atWork are more things that are called one's own while one works on them.
const atWork = notPersonal + " terminal server container docker config configuration setup pipeline component page form button input output string list array loop variable type struct module package library library's dependency dependencies import job deployment cluster pod service endpoint request response token session route schema migration model data dataset notebook plot regex shell prompt log logs branch's first last second next previous changes question point mistake bad goal problem issue tests' " +
	"server anwendung skript fehler frage abfrage klasse funktion änderung änderungen programme erreur serveur requête question servidor consulta función error pregunta servizio errore domanda funzione erro pergunta servidor fout vraag functie"

// openers stand before a statement and say nothing.
var openers = regexp.MustCompile(`(?i)^((please|pls|and|but|also|oh|hi|hello|hey|btw|by the way|ok|okay|so|note|note that|remember|remember that|fyi|for the record|in general|generally|bitte|und|aber|auch|übrigens|ach ja|merk dir|denk daran|s'il te pla[iî]t|s'il vous pla[iî]t|stp|svp|et|aussi|au fait|por favor|y|además|por cierto|recuerda|per favore|e|anche|a proposito|ricorda|também|aliás|lembra|alsjeblieft|en|ook|trouwens|onthoud)[,:;!]?\s+)+`)

var (
	// whose begins a statement about what is one's own.
	whose = regexp.MustCompile(`(?i)^(my|mine|mein|meine|mon|ma|mes|mi|mis|il mio|la mia|i miei|le mie|mio|mia|o meu|a minha|os meus|as minhas|meu|minha|mijn) (\S+)`)

	// i says that somebody speaks of themselves.
	i = regexp.MustCompile(`(?i)(^|[\s,;])(i|i'm|i've|ich|je|j'\S+|yo|io|eu|ik|me|mi|prefiero|prefiro|preferisco|vivo|trabajo|moro|abito|abitiamo|lavoro|trabalho|soy|sono|sou|tengo|ho|tenho)\s`)

	// passing is said of what is spoken of now, and of nobody.
	passing = regexp.MustCompile(`(?i)\b(i like|i prefer|i usually|i mean by|i work|i call|ich mag|me gusta|mi piace|eu gosto|ik hou van|j'aime|je préfère|prefiero|prefiro|preferisco|ich bevorzuge|am i|have i|i work on|ich arbeite an|je travaille sur|trabajo en el|lavoro a|trabalho em) (bien |do |d[eo] |\p{L}+ )?(the (first|second|third|last|other|new|old|latter|former|idea|approach|way|look|version|name|option)|this|that|these|those|it|your|you|what you|how you|dies\S*|das|den (ersten|zweiten|vorschlag)|die (erste|zweite|idee)|deine?\S*|cette?|ces|ça|ta|ton|la (première|deuxième|segunda|primera|prima|seconda)|tu|est[aeo]s?|es[ae]|quest[aoei]|quell[ao]|il tuo|la tua|ess[ae]|tua|teu|dest[ae]|dess[ae]|deze|dit|dat|je)\b`)
)

// working says what somebody is at, and nothing of them.
var working = regexp.MustCompile(`(?i)\b(i work on|ich arbeite (an|am)|je travaille sur|trabajo en (el|la|los|las|este|esta)|lavoro (al|alla|su|sul|sulla)|trabalho (no|na|neste|nesta)|ik werk aan)\s`)

// bare are words that are not said of oneself alone.
var bare = regexp.MustCompile(`(?i)\b(i am|i'm|ich bin|je suis|soy|sono|sou|ik ben) ((also|really|actually|auch|aussi|también|anche|também|ook) )?(an? |eine? |un[ea]? |um[a]? |een |allerg|vegan|vegetari|left-hand|color-?blind|colou?r-?blind|linkshänd|farbenblind|from|aus|de|da|di|uit|years|\d+)`)

// selves are words of which one is in all that is said of oneself.
var selves = func() map[string]bool {
	m := make(map[string]bool)
	for w := range strings.FieldsSeq("i i'm i've i'd ich je yo io eu ik me mi from don't do don prefiero prefiro preferisco vivo trabajo moro abito lavoro trabalho soy sono sou tengo ho tenho désormais dorénavant partir ahora adelante d'ora agora diante vanaf nu ab j'aime j'habite j'ai j'utilise j'écris j'adore " + markers) {
		m[w] = true
	}
	for i := range languages {
		for w := range strings.FieldsSeq(languages[i].mine) {
			m[w] = true
		}
	}
	return m
}()

// speaks reports whether a sentence may say something of oneself: most do not,
// and cost next to nothing.
func speaks(s string) bool {
	s = strings.ToLower(s)
	for from, at := 0, 0; at <= len(s); at++ {
		if at < len(s) && (s[at] >= 'a' && s[at] <= 'z' || s[at] == '\'' || s[at] >= utf8.RuneSelf) {
			continue
		}
		w := s[from:at]
		if selves[w] || len(w) > 2 && (w[1] == '\'' || w[1] >= utf8.RuneSelf) { // j'aime, n’oublie
			return true
		}
		from = at + 1
	}
	return false
}

// ofThemselves reports whether a sentence states something of who says it.
func ofThemselves(s string) bool {
	if strings.HasSuffix(s, "?") || passing.MatchString(s) || working.MatchString(s) {
		return false
	}
	s = openers.ReplaceAllString(s, "")
	if m := whose.FindStringSubmatch(s); m != nil {
		return !slices.Contains(strings.Fields(atWork), strings.ToLower(strings.Trim(m[2], ".,:;!'’")))
	}
	if bare.MatchString(s) {
		return true
	}
	return i.MatchString(s) && phrased(strings.ToLower(s))
}

// phrased reports whether a sentence has a phrase or a word of the table. What is
// one's own does not count: it may be anything that is worked on.
func phrased(lower string) bool {
	joined := " " + strings.ReplaceAll(strings.Join(strings.FieldsFunc(lower, between), " "), "’", "'") + " "
	for n := range languages {
		for p := range strings.SplitSeq(languages[n].phrase, "|") {
			if strings.Contains(joined, " "+p) {
				return true
			}
		}
		for a := range strings.FieldsSeq(languages[n].about) {
			if strings.Contains(joined, " "+a) {
				return true
			}
		}
	}
	return false
}

func between(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsNumber(r) && r != '\'' && r != '-' && r != '’'
}

// sentences are those of a message, without code, quotations and lists of
// fields; none of one that is long.
func sentences(text string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		if len(text) > maxText {
			return
		}
		for line := range fence.Outside(text) {
			line = strings.TrimSpace(line)
			if line == "" || strings.ContainsRune(">|<{}#$", rune(line[0])) || strings.ContainsAny(line, "{}<>") {
				continue
			}
			line = strings.TrimLeft(line, "-*• ")
			for len(line) > 0 {
				end := len(line)
				for n, r := range line {
					if (r == '.' || r == '!' || r == '?' || r == ';') && (n+1 == len(line) || line[n+1] == ' ') {
						end = n + 1
						break
					}
				}
				s := strings.TrimSpace(line[:end])
				line = strings.TrimSpace(line[end:])
				if s != "" && len(s) <= maxStatement && !yield(s) {
					return
				}
			}
		}
	}
}

// Rule is what a person laid down for all that is done for them.
type Rule struct {
	Text  string
	Never bool // something is not to be done
	words map[string]bool
}

// lays says how a sentence begins that lays down a rule, in each language, and
// how one that forbids.
var lays = []struct{ rule, never *regexp.Regexp }{
	{regexp.MustCompile(`^(always|from now on|i (always|usually|generally|strongly|really|much )?\s*prefer|i'd (always )?prefer|i would (always )?prefer|i always|i'd rather|i want you to always|prefer|you should always)[\s,]`), // English
		regexp.MustCompile(`^(never|don'?t ever|do not ever|i never|i don't (ever )?want|i do not (ever )?want|i never want|you should never)[\s,]`)},
	{regexp.MustCompile(`^(immer|stets|grundsätzlich|ab (jetzt|sofort)|ich bevorzuge|ich \p{L}+ (immer|lieber|stets|grundsätzlich)|\p{L}+e? (bitte )?(immer|stets|grundsätzlich))[\s,]`), // German
		regexp.MustCompile(`^(nie|niemals|nie wieder|ich (\p{L}+) (nie|niemals)|ich will (nie|niemals|keine?n?)|\p{L}+e? (bitte )?(nie|niemals))[\s,]`)},
	{regexp.MustCompile(`^(toujours|désormais|dorénavant|je préfère|je \p{L}+ toujours|j'\p{L}+ toujours|\p{L}+(-\p{L}+)? toujours)[\s,]`), // French
		regexp.MustCompile(`^(jamais|(je )?ne (\p{L}+ )+?jamais|(je )?n'\p{L}+ jamais)[\s,]`)},
	{regexp.MustCompile(`^(siempre|(yo )?prefiero|a partir de ahora|de ahora en adelante|\p{L}+ siempre)[\s,]`), // Spanish
		regexp.MustCompile(`^(nunca|jamás|no \p{L}+ nunca|\p{L}+ nunca)[\s,]`)},
	{regexp.MustCompile(`^(sempre|(io )?preferisco|d'ora in poi|\p{L}+ sempre)[\s,]`), // Italian
		regexp.MustCompile(`^(mai|non \p{L}+ mai)[\s,]`)},
	{regexp.MustCompile(`^(sempre|(eu )?prefiro|a partir de agora|daqui em diante|\p{L}+ sempre)[\s,]`), // Portuguese
		regexp.MustCompile(`^(nunca|jamais|não \p{L}+ nunca|(eu )?\p{L}*\s?nunca)[\s,]`)},
	{regexp.MustCompile(`^(altijd|vanaf nu|ik geef de voorkeur aan|ik heb liever|ik wil liever|ik \p{L}+ (altijd|liever)|\p{L}+ (alsjeblieft )?altijd)[\s,]`), // Dutch
		regexp.MustCompile(`^(nooit|ik \p{L}+ nooit|\p{L}+ (alsjeblieft )?nooit)[\s,]`)},
}

var (
	// reports begin what tells how something behaves, and lays nothing down.
	reports = regexp.MustCompile(`^(never ?mind|(always|never) \p{L}+(ing|ed|[^s]s)\b|i (always|never) (get|got|have|had|see|saw|forget|forgot|find|found|end|need|wonder|thought|knew|heard|said|did|was|am|know|understood|understand|seem|mix|confuse|run into|\p{L}+ed)\b|` +
		`(das|es|er|sie|der|die|wir|man|du|ihr|dies|ist|sind|war|warum|wieso|was|wer|wo|wie|noch|fast|so|schon|auch|aber|und|hat|kommt|läuft|geht|ich (habe|bin|bekomme|kriege|vergesse|sehe)) |` +
		`(ça|il|elle|on|c'est|cela|pourquoi|presque|comme|est|j'ai|je (vois|suis|me|l')) |` +
		`(esto|eso|casi|como|está|es|ha|he|me|se|qué|porque|por|lo|la|el) |(questo|quasi|come|è|ha|ho|mi|si|non è|perché|lo|la|il) |(isso|isto|quase|como|está|é|me|se|porque|eu (vi|sei|esqueço)) |` +
		`(het|dat|dit|hij|zij|ze|wij|we|is|zijn|was|waarom|bijna|nog|er|krijg|ik (krijg|zie|vergeet)) )`)

	// here is said of what is worked on now.
	here = regexp.MustCompile(`(^|\s)(this|these|here|now|currently|diese[mnrs]?|hier|jetzt|cette?|ces|ici|est[ae]s?|esto|aquí|aqui|quest[aoei]|qui|dit|deze)(\s|[.,:;!]|$)`)
)

// fromNowOn does not speak of what is worked on now.
var fromNowOn = strings.NewReplacer("from now on", "", "ab jetzt", "")

// Rules are those that a person lays down in a message.
func Rules(text string) (out []Rule) {
	for s := range sentences(text) {
		if !speaks(s) {
			continue
		}
		if r, ok := readRule(s); ok {
			if out = append(out, r); len(out) == maxSaid {
				break
			}
		}
	}
	return out
}

// RuleOf is the rule that a sentence lays down, as Rules found it once.
func RuleOf(sentence string) Rule {
	r, _ := readRule(sentence)
	r.Text = sentence
	return r
}

func readRule(s string) (r Rule, ok bool) {
	lower := strings.ToLower(strings.ReplaceAll(openers.ReplaceAllString(s, ""), "’", "'"))
	if strings.HasSuffix(s, "?") || reports.MatchString(lower) || here.MatchString(fromNowOn.Replace(lower)) {
		return r, false
	}
	for n := range lays {
		never := lays[n].never.MatchString(lower)
		if !never && !lays[n].rule.MatchString(lower) {
			continue
		}
		r = Rule{Text: s, Never: never, words: telling(lower)}
		return r, len(r.words) > 0
	}
	return r, false
}

// markers say that something is a rule, and not which.
const markers = "always never prefer rather usually generally strongly immer stets grundsätzlich nie niemals bevorzuge lieber toujours jamais préfère désormais dorénavant siempre nunca jamás prefiero sempre mai preferisco prefiro jamais altijd nooit liever voorkeur please bitte alsjeblieft ever mai"

// telling are the words of a rule that tell it from others.
func telling(lower string) map[string]bool {
	words := make(map[string]bool)
	for w := range strings.FieldsFuncSeq(lower, between) {
		if !strength.Common(w) && !slices.Contains(strings.Fields(markers), w) {
			words[stem(w)] = true
		}
	}
	return words
}

// stem is the beginning of a word, which its other forms have too.
func stem(w string) string {
	if r := []rune(strings.TrimRight(w, "ns")); len(r) > 0 {
		return string(r[:min(len(r), 6)])
	}
	return w
}

const (
	// sameWords is the part of the shorter one's words that two wordings of one
	// rule share, and timesLonger how much longer the other may be.
	sameWords   = 0.75
	timesLonger = 3
)

// acts finds what a rule has somebody fetch or run: an address, a path, a pipe or
// another sign of a shell, a flag.
var acts = regexp.MustCompile("[|`$&\\\\]|://|(?:^|[\\s'\"(])(?:www\\.|[.~]{0,2}/\\w|-{1,2}[a-zA-Z]|[\\w-]+(?:\\.[\\w-]+)+/)")

// Acts reports whether a rule names something to fetch or to run. Whoever can have
// it followed can have anything done: its person is asked first.
func (r Rule) Acts() bool { return acts.MatchString(r.Text) }

// Same reports whether two sentences lay down the same rule, as far as words
// tell it.
func (r Rule) Same(o Rule) bool {
	short, long := r.words, o.words
	if len(short) > len(long) {
		short, long = long, short
	}
	if r.Never != o.Never || len(short) == 0 || len(long) > timesLonger*len(short) {
		return false
	}
	both := 0
	for w := range short {
		if long[w] {
			both++
		}
	}
	return float64(both) >= sameWords*float64(len(short))
}
