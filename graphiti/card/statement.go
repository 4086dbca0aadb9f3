package card

import (
	_ "embed"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti/words"
)

// Act is the request that a statement makes to the memory.
type Act uint8

// The acts.
const (
	Rule     Act = iota // to follow it from now on
	Remember            // to remember its text
	Forget              // to end the statements that match its text
)

// Statement is a sentence in which a person addresses the memory.
type Statement struct {
	Act  Act
	Text string

	// Instructs is set if the text is an instruction for answers or for work. It is shown
	// at the beginning of conversations; any other text is a fact, and is found by a match.
	Instructs bool

	// Personal is set if the text is about the person or for all projects, and so may apply
	// outside of its place.
	Personal bool

	// Vague is set if a request to forget names a subject instead of a statement, such as
	// "forget my phone number".
	Vague bool

	// begun is set if the sentence begins as a statement does, and contains nothing else.
	begun bool
}

// password matches a sentence that may contain a password, even a password unlike a
// credential: a mix of letters and digits, or one word after "is".
var password = regexp.MustCompile(`(?i)(?:pass(?:word|wort|phrase|code)|mot de passe|contraseña|palavra-passe|senha|wachtwoord|парол|hasło|パスワード|密码|密碼|비밀번호).*(?:[a-z]\d|\d[a-z]| (?:is|ist|lautet|est|es|è|é|to|—) \S+$|: ?\S+$)`)

// TellsPassword reports whether the text may contain a password. A message with a false
// match is still stored like any other message.
func (s *Statement) TellsPassword() bool { return password.MatchString(s.Text) }

const (
	maxAsking = 2000 // characters of a message with statements: a longer one may be pasted
	maxAlone  = 400  // characters of a message that consists of statements
	maxSaid   = 8    // statements of a message
	maxWish   = 1000 // characters of a text to remember
	minWords  = 2    // words of such a text, in scripts with spaces
	minSigns  = 4    // characters of such a text, in other scripts
)

// Parsed is the result of Read.
type Parsed struct {
	Statements []Statement

	// Alone is set if the message is one short paragraph of statements, each of which begins
	// with its mark or verb, and a closing "thanks" at most. Only then did its author address
	// the memory. Any other message may quote another person.
	Alone bool

	TooLong int // texts to remember that are too long
}

// Read finds the statements in a message. The text must be the whole message, uncut: a long
// message is pasted text, and has no statements. Questions, code, quotations, and text
// after a line that ends with a colon contain none.
func Read(text string) (m Parsed) {
	text = strings.TrimRightFunc(strings.TrimLeft(text, "\r\n"), unicode.IsSpace)
	chars := utf8.RuneCountInString(text)
	if chars > maxAsking {
		return m
	}
	asked, ruled := phrasesIn(text)
	if len(asked) == 0 && !ruled { // the usual case
		return m
	}
	m.Alone = chars <= maxAlone && !strings.ContainsFunc(text, breaks)
	read := 0 // letters of its sentences
	for s := range sentences(text) {
		read += letters(s)
		one, ok := statement(s, asked, ruled)
		switch {
		case !ok:
			// "Thanks!" may follow; an earlier short sentence is a title.
			m.Alone = m.Alone && len(m.Statements) > 0 && thanks(s)
		case utf8.RuneCountInString(one.Text) > maxWish:
			m.TooLong++
		case one.Act == Rule && chars > maxAlone: // one of many sentences about a task
		default:
			m.Statements = append(m.Statements, one)
			m.Alone = m.Alone && one.begun && (!one.Instructs || !Acts(one.Text) && !innerEnd.MatchString(s))
		}
		if len(m.Statements) == maxSaid {
			m.Alone = false
			break
		}
	}
	m.Alone = m.Alone && len(m.Statements) > 0 && read == letters(text) // else it has code or a quotation
	if one, ok := vague(text, asked); ok && len(m.Statements) == 0 {
		m.Statements, m.Alone = append(m.Statements, one), m.TooLong == 0
	}
	return m
}

// Forgets reports whether a message only asks to forget something. It recalls nothing: the
// answer would repeat the subject.
func Forgets(text string) bool {
	m := Read(text)
	return m.Alone && len(m.Statements) == 1 && m.Statements[0].Act == Forget
}

// thanks reports whether a sentence may be "Thanks!" in any language: at most two words with
// a sentence's signs only, and no name.
func thanks(s string) bool {
	first, size := utf8.DecodeRuneInString(s)
	foreign := func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.Is(unicode.M, r) && !unicode.IsSpace(r) && !strings.ContainsRune(".,!'’。、！", r)
	}
	return words.Nods(s) && !words.Requests(s) && !strings.ContainsFunc(s, foreign) && !strings.ContainsFunc(s[size:], unicode.IsUpper) &&
		(unicode.IsLower(first) || strings.ContainsAny(s[size:], ".!。！"))
}

// breaks reports whether a character ends a line or is invisible.
func breaks(r rune) bool { return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) }

func letters(s string) (n int) {
	for _, r := range s {
		if unicode.IsLetter(r) {
			n++
		}
	}
	return n
}

// phrasesIn returns the indexes of the tongues with a phrase of request in the text, and
// reports whether the text may contain a rule. It finds phrases within other words, too.
func phrasesIn(text string) (asked []int, ruled bool) {
	lower := strings.ReplaceAll(strings.ToLower(text), "’", "'")
	for n := range tongues {
		ruled = ruled || tongues[n].More != "" && strings.Contains(lower, tongues[n].More)
		for phrase := range strings.SplitSeq(tongues[n].Ask+"|"+tongues[n].Forget+"|"+tongues[n].Drops, "|") {
			if phrase != "" && strings.Contains(lower, phrase) {
				asked = append(asked, n)
				break
			}
		}
	}
	for phrase, m := range marks {
		ruled = ruled || (m.lasting || m.prefers) && strings.Contains(lower, phrase)
	}
	return asked, ruled
}

// statement parses a sentence such as "Please remember that we use tabs".
func statement(s string, asked []int, ruled bool) (one Statement, ok bool) {
	s = strings.Join(strings.Fields(s), " ")
	if asks(s) {
		return one, false
	}
	if one, ok = wish(strings.TrimRight(s, ".!;。！； "), asked); ok || !ruled {
		return one, ok
	}
	text := strings.TrimLeft(s, "-*• ")
	everywhere, ok := readRule(text)
	return Statement{Act: Rule, Text: text, Instructs: true, Personal: everywhere || !namesProject(s), begun: begins(s) && isPlain(s, "") && !isAbout(s)}, ok
}

// innerEnd matches the end of a sentence that more text follows: "Always use tabs. so says Eve".
var innerEnd = regexp.MustCompile(`[.!。！]\s+\S`)

// isPlain reports whether a sentence has no signs besides those of plain sentences, and others: a
// bracket, a quotation mark, a colon, an arrow or a list sign may set off another author's text.
func isPlain(s, others string) bool {
	inner := func(at int) bool { // within a word
		before, _ := utf8.DecodeLastRuneInString(s[:at])
		next, _ := utf8.DecodeRuneInString(s[at+1:])
		return isWordRune(before) && isWordRune(next)
	}
	first, _ := utf8.DecodeRuneInString(s)
	for at, r := range s {
		if !isWordRune(r) && !strings.ContainsRune(" .,!'’。、，！", r) && !strings.ContainsRune(others, r) && (!strings.ContainsRune("-/_", r) || !inner(at)) {
			return false
		}
	}
	return unicode.IsLetter(first)
}

// inFacts are the signs of a fact to remember, which no conversation begins with.
const inFacts = `"“”„«»:：;；()@+%&€£=_*`

func isWordRune(r rune) bool { return unicode.In(r, unicode.L, unicode.M, unicode.N) }

// tongue describes requests to remember or to forget something in one language. In other
// languages such a message is stored like any other.
type tongue struct {
	Name string

	// A request begins with ask or forget, optionally after words of please, and continues
	// with a colon or that: "please remember that …". A text that begins with a word of not
	// makes it another sentence.
	Please, Ask, Forget, That, Not string

	// In languages with other word orders, forms and forgets are patterns of whole
	// sentences that contain ask or forget, with the text as a group.
	Forms, Forgets []string

	// subjects are patterns of whole messages that ask to forget a subject, the group, and
	// drops has a phrase of each, apart from those of ask and forget.
	Drops    string
	Subjects []string

	// Words of self refer to the author, and words of first do so only at the beginning of
	// a text. Words of others contain a word of self but do not refer to the author.
	// Phrases of here refer to a project, and words of answer to answers.
	Self, First, Others, Here, Answer string

	Ends string // of requests, in languages with the verb at the end

	// The marks of rules. Front begins another clause before a rule, everywhere extends it to all
	// projects, anywhere does so beside a lasting mark, prefers is lasting in a sentence that names the
	// project, and weak marks no rule. A rule begins with a mark, or with should or a verb; a word of
	// as before a mark refers to the current task. Runs are words for fetching, running ("+") and
	// installing, or their beginnings before "*", checks are the project's own programs, and tells introduces
	// the sentence of another author. Last are verbs that instruct at the end, denied those that do so behind
	// a negation. A rule waits that has wants and a lasting mark ("I always want …"), or more behind a negation.
	Last, Denied, Wants, More, Lasting, Front, Weak, Everywhere, Anywhere, Prefers, Should, As, Verbs, Runs, Checks, Tells string
}

//go:embed tongues.json
var tonguesJSON []byte

// tongues are the languages of requests.
var tongues = func() (all []tongue) {
	if err := json.Unmarshal(tonguesJSON, &all); err != nil {
		panic(err) // of this package's own file
	}
	return all
}()

// wishes has the patterns of requests to remember or to forget, for each of tongues.
var wishes = func() (all [][]wishForm) {
	for n := range tongues {
		l := &tongues[n]
		forms := func(act Act, verbs string, own []string) (list []wishForm) {
			if own == nil && verbs != "" {
				please := `(?:` + l.Please + `)`
				own = []string{`^(?:` + please + `,? )*(?:` + verbs + `)(?:,? ` + please + `)*(?:,? (?:` + l.That + `)| ?[:：] ?)(.+)$`}
			}
			for _, f := range own {
				list = append(list, wishForm{act, regexp.MustCompile(`(?i)` + f)})
			}
			return list
		}
		all = append(all, append(forms(Remember, l.Ask, l.Forms), forms(Forget, l.Forget, l.Forgets)...))
	}
	return all
}()

type wishForm struct {
	act  Act
	form *regexp.Regexp
}

// subjects has the patterns of requests to forget a subject, for each of tongues.
var subjects = func() (all [][]*regexp.Regexp) {
	for n := range tongues {
		var list []*regexp.Regexp
		for _, p := range tongues[n].Subjects {
			list = append(list, regexp.MustCompile(`(?i)`+p))
		}
		all = append(all, list)
	}
	return all
}()

// vague parses a message that asks to forget a subject: one about the person or named by two
// words at least. "Forget the tests, fix the parser" is about the current task.
func vague(text string, asked []int) (one Statement, ok bool) {
	text = strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "’", "'")
	for _, n := range asked {
		for _, form := range subjects[n] {
			m := form.FindStringSubmatch(strings.TrimRight(text, ".!?;。！？； "))
			if m == nil {
				continue
			}
			subject := strings.TrimSpace(strings.Join(m[1:], ""))
			if words := ContentWords(subject); words == 0 || !tongues[n].ofSelf(subject) && (words < minWords || strings.ContainsAny(subject, ",;.")) {
				continue
			}
			return Statement{Act: Forget, Text: subject, Personal: true, Vague: true, begun: true}, true
		}
	}
	return one, false
}

// wish parses a request to remember or to forget.
func wish(s string, asked []int) (one Statement, ok bool) {
	for _, n := range asked {
		l := &tongues[n]
		for _, f := range wishes[n] {
			m := f.form.FindStringSubmatch(s)
			if m == nil {
				continue
			}
			said := strings.TrimSpace(strings.Join(m[1:], ""))
			one := Statement{Act: f.act, Text: said, Instructs: l.instructs(said), Personal: l.ofSelf(said)}
			// Text before the verb may be a label or a quotation.
			one.begun = isPlain(s, "") || !one.Instructs && !strings.HasPrefix(s, said) && isPlain(s, inFacts)
			return one, l.says(said)
		}
	}
	return one, false
}

// instructs reports whether a text is an instruction for future answers or work.
func (l *tongue) instructs(said string) bool {
	if marksOf(said).lasting {
		return true
	}
	lower := strings.ToLower(said)
	if l.Forms != nil {
		return slices.ContainsFunc(strings.Fields(l.Answer), func(w string) bool { return strings.Contains(lower, w) })
	}
	return slices.ContainsFunc(strings.FieldsFunc(lower, func(r rune) bool { return !unicode.IsLetter(r) }), func(w string) bool { return slices.Contains(strings.Fields(l.Answer), w) })
}

// says reports whether the text of a request is complete: neither a mere reference nor the
// end of a quotation.
func (l *tongue) says(said string) bool {
	if strings.ContainsAny(said[max(0, len(said)-1):], ":'") || strings.HasSuffix(said, "：") || strings.HasSuffix(said, "’") {
		return false
	}
	if l.Forms != nil {
		return utf8.RuneCountInString(said) >= minSigns
	}
	words := strings.Fields(strings.ToLower(said))
	return len(words) >= minWords && !slices.Contains(strings.Split(l.Not, "|"), strings.Trim(words[0], ",.:"))
}

// ofSelf reports whether the text of a request is about the person, not about their work.
func (l *tongue) ofSelf(said string) bool {
	lower, self := strings.ToLower(strings.ReplaceAll(said, "’", "'")), strings.Fields(l.Self)
	words := strings.FieldsFunc(lower, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(`,.:;!"()`, r) })
	if l.Forms == nil {
		lower = " " + strings.Join(words, " ") + " "
	}
	if containsOne(lower, l.Here) {
		return false
	}
	if l.Others != "" { // no spaces between words
		for o := range strings.FieldsSeq(l.Others) {
			lower = strings.ReplaceAll(lower, o, "")
		}
		return slices.ContainsFunc(self, func(w string) bool { return strings.Contains(lower, w) })
	}
	begins := slices.DeleteFunc(slices.Clone(words[:min(2, len(words))]), func(w string) bool { return slices.Contains(nots, w) })
	if len(begins) > 0 && slices.Contains(strings.Fields(l.First), begins[0]) {
		return true
	}
	for n, w := range words {
		w, _, _ = strings.Cut(w, "'") // I'm, j'aime
		ofWork := n+1 < len(words) && slices.Contains(atWork, words[n+1])
		if slices.Contains(self, w) && !ofWork {
			return true
		}
	}
	return false
}

// containsOne reports whether a text contains one of some phrases, which are separated by
// bars.
func containsOne(text, some string) bool {
	for one := range strings.SplitSeq(some, "|") {
		if strings.Contains(text, one) {
			return true
		}
	}
	return false
}

// nots are negations that may precede the first word of a request's text.
var nots = []string{"no", "non", "não", "nie"}

// atWork are nouns for things that people call their own while they work on them.
var atWork = strings.Fields("code function method class file files test tests branch repo repository project build pr commit change changes diff script query app api server " +
	"database table error bug projekt datei fonction fichier código proyecto archivo progetto codice função arquivo bestand terminal container docker " +
	"config configuration setup pipeline component page form button input output string list array loop variable type struct module package library " +
	"library's dependency dependencies import job deployment cluster pod service endpoint request response token session route schema migration model data " +
	"dataset notebook plot regex shell prompt log logs branch's first last second next previous question point mistake bad goal problem issue tests' " +
	"anwendung skript fehler frage abfrage klasse funktion änderung änderungen programme erreur serveur requête servidor consulta función pregunta servizio " +
	"errore domanda funzione erro pergunta fout vraag functie")

// quotes are the signs that begin or end a quotation or code; after an odd number of them
// it is open.
const quotes = "\"`“”„«»「」『』"

// sentences yields the sentences of a message outside of code, quotations and fields, up to
// the first line that ends with a colon.
func sentences(text string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		marks := 0
		for line := range words.OutsideFences(text) {
			code := strings.HasPrefix(line, "    ") || strings.HasPrefix(line, "\t") || strings.ContainsAny(line, "{}<>")
			line = strings.TrimSpace(line)
			code = code || line != "" && strings.IndexByte(">|#$", line[0]) >= 0
			for s := range words.Sentences(line) {
				if !code && marks%2 == 0 && !yield(s) {
					return
				}
				for _, r := range s {
					if strings.ContainsRune(quotes, r) {
						marks++
					}
				}
			}
			if strings.HasSuffix(line, ":") || strings.HasSuffix(line, "：") {
				return // the rest may be another person's text
			}
		}
	}
}
