package card

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti/words"
)

// Wish is a text that a person asks to have remembered.
type Wish struct {
	Text string
	Own  bool // it is about themselves, and so counts everywhere
}

// password matches a sentence that may tell a password, even one that does not look like
// a credential: a mix of letters and digits, or one word behind "is".
var password = regexp.MustCompile(`(?i)(?:pass(?:word|wort|phrase|code)|mot de passe|contraseña|palavra-passe|senha|wachtwoord|парол|hasło|パスワード|密码|密碼|비밀번호).*(?:[a-z]\d|\d[a-z]| (?:is|ist|lautet|est|es|è|é|to|—) \S+$|: ?\S+$)`)

// TellsPassword reports whether it may tell a password. A wish that is taken for one by
// mistake is still kept like any other message.
func (w Wish) TellsPassword() bool { return password.MatchString(w.Text) }

// Acts reports whether it names something to fetch or to run.
func (w Wish) Acts() bool { return personRule{Text: w.Text}.acts() }

const (
	maxAsking = 2000 // characters of a message that asks: a longer one may have been pasted
	maxWish   = 1000 // characters of what is to be remembered
	minWords  = 2    // of it, where words stand apart
	minSigns  = 4    // characters of it, where they do not
)

// tongue says how people ask in a language to remember something. In other languages a
// wish is kept like any other message, not word for word.
type tongue struct {
	name string

	// A sentence begins with ask, behind words of please or none, and a colon or
	// that: "please remember that …". Words of not behind that make it another.
	please, ask, that, not string

	// In languages whose words change with their neighbours, forms are patterns of whole
	// sentences that hold one of ask, with the wish as a group.
	forms []string

	// Words of self make a wish one about its author; those of first do so only at its
	// beginning; those of others contain one of self, but mean somebody else. Words of
	// here make it one about a project.
	self, first, others, here string
}

// tongues are the languages in which one can ask.
var tongues = []tongue{
	{name: "English", please: "please|pls|ok|okay|and|also", ask: "remember|remember this", that: "that ", not: "for|time|day|one|thing|when",
		self: "i my mine me myself", here: " here | this repo | this project | this codebase "},
	{name: "German", please: "bitte|und|auch", ask: "merk dir|merke dir|merken sie sich", that: "dass |daß ",
		self: "ich mein meine meinem meinen meiner meines mir mich", here: " hier | diesem projekt | diesem repo | dieses projekt "},
	{name: "French", please: "s['’]il (?:te|vous) pla[iî]t|stp|svp|et|bien", ask: "retiens|retenez|souviens-toi|souvenez-vous", that: "que |qu['’]",
		self: "je j moi me m mon ma mes", here: " ici | ce projet | ce dépôt "},
	{name: "Spanish", please: "por favor|y", ask: "recuerda|recuerde", that: "que ",
		self: "yo mi mis me mí mío mía conmigo", first: "prefiero vivo trabajo soy tengo uso", here: " aquí | este proyecto | este repo "},
	{name: "Italian", please: "per favore|per piacere|e", ask: "ricorda|ricordati", that: "che ",
		self: "io mi mio mia miei mie me", first: "preferisco abito vivo lavoro sono ho uso", here: " qui | questo progetto | questo repo "},
	{name: "Portuguese", please: "por favor|e", ask: "lembra-te|lembra|lembre-se|lembre", that: "que |de que ",
		self: "eu meu minha meus minhas mim me comigo", first: "prefiro moro vivo trabalho sou tenho uso", here: " aqui | este projeto | neste projeto | deste projeto "},
	{name: "Dutch", please: "alsjeblieft|alstublieft|en", ask: "onthoud", that: "dat ", not: "voor|even|maar|goed",
		self: "ik mijn mij me", here: " hier | dit project | deze repo "},
	{name: "Russian", please: "пожалуйста|и", ask: "запомни|запомните|помни", that: "что ",
		self: "я меня мне мной мой моя моё мое мои моего моей моих моему моим мою", here: " здесь | этом проекте | этот проект | этого проекта "},
	{name: "Polish", please: "proszę|i", ask: "zapamiętaj|zapamiętajcie|pamiętaj", that: "że |iż ",
		self: "ja mój moja moje moi mojego mojej moich mojemu moim moją mnie mi mną", first: "jestem mam lubię wolę mieszkam pracuję używam", here: " tutaj | ten projekt | tym projekcie | tego projektu "},
	{name: "Japanese", ask: "覚えておいて", forms: []string{`^覚えておいて(?:ください|下さい|ね)?[:：、]\s*(.+)$`, `^(.+?)(?:という?こと)?(?:を|は|と)、?覚えておいて(?:ください|下さい|ね)?$`},
		self: "私 僕 俺", others: "私有 私立 私設", here: "このプロジェクト|このリポジトリ|ここでは"},
	{name: "Chinese", ask: "记住|記住", forms: []string{`^(?:请你?|請你?)?(?:帮我|幫我)?(?:记住|記住)(?:[:：,，]\s*(.+)|([^了过過这這那它没沒不什怎:：,，].+))$`},
		self: "我", others: "我们 我們", here: "这个项目|這個專案|这个仓库|本项目|这里"},
	{name: "Korean", ask: "기억해", forms: []string{`^기억해 ?(?:줘|주세요|둬|두세요)?[:：,]\s*(.+)$`, `^(.+?)(?:이?라고|다고|(?:다는|인) (?:것을|걸)) ?기억해 ?(?:줘|줘요|주세요|둬|두세요)$`, `^(.+?)이?라고 기억해$`},
		self: "나는 난 내가 나의 나를 나한테 저는 제가 저의 저를 저한테", first: "내 나 제 저", here: "이 프로젝트|이 저장소|여기"},
}

// asked are the patterns of sentences that ask, for each of tongues.
var asked = func() [][]*regexp.Regexp {
	all := make([][]*regexp.Regexp, len(tongues))
	for n := range tongues {
		l := &tongues[n]
		forms := l.forms
		if forms == nil {
			please := `(?:` + l.please + `)`
			forms = []string{`^(?:` + please + `,? )*(?:` + l.ask + `)(?:,? ` + please + `)*(?:,? (?:` + l.that + `)| ?[:：] ?)(.+)$`}
		}
		for _, f := range forms {
			all[n] = append(all[n], regexp.MustCompile(`(?i)`+f))
		}
	}
	return all
}()

// Wishes returns what a person asks in a message to have remembered; tooLong counts those
// that are too long. A sentence has to begin with the wish. Questions, code, quotations,
// lists, and text behind a line that ends with a colon hold no wishes.
func Wishes(text string) (list []Wish, tooLong int) {
	if utf8.RuneCountInString(text) > maxAsking {
		return nil, 0
	}
	lower, ask := strings.ToLower(text), false
	for n := range tongues {
		ask = ask || containsOne(lower, tongues[n].ask)
	}
	if !ask { // as most do
		return nil, 0
	}
	for s := range sentences(text) {
		w, ok := wish(s)
		switch {
		case !ok:
		case utf8.RuneCountInString(w.Text) > maxWish:
			tooLong++
		default:
			list = append(list, w)
		}
		if len(list) == maxSaid {
			break
		}
	}
	return list, tooLong
}

// wish reads a sentence such as "Please remember that we use tabs".
func wish(s string) (w Wish, ok bool) {
	s = strings.Join(strings.Fields(s), " ")
	if asks(s) {
		return w, false
	}
	s = strings.TrimRight(s, ".!;。！； ")
	for n := range tongues {
		l := &tongues[n]
		for _, form := range asked[n] {
			m := form.FindStringSubmatch(s)
			if m == nil {
				continue
			}
			said := strings.TrimSpace(strings.Join(m[1:], ""))
			return Wish{said, l.ofSelf(said)}, l.says(said)
		}
	}
	return w, false
}

// says reports whether a wish's text is complete: it does not only point at something, nor
// end somebody's quotation.
func (l *tongue) says(said string) bool {
	if strings.ContainsAny(said[max(0, len(said)-1):], ":'") || strings.HasSuffix(said, "：") || strings.HasSuffix(said, "’") {
		return false
	}
	if l.forms != nil {
		return utf8.RuneCountInString(said) >= minSigns
	}
	words := strings.Fields(strings.ToLower(said))
	return len(words) >= minWords && !slices.Contains(strings.Split(l.not, "|"), strings.Trim(words[0], ",.:"))
}

// ofSelf reports whether a wish's text is about the person, not about their work.
func (l *tongue) ofSelf(said string) bool {
	lower, self := strings.ToLower(strings.ReplaceAll(said, "’", "'")), strings.Fields(l.self)
	words := strings.FieldsFunc(lower, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(`,.:;!"()`, r) })
	if l.forms == nil {
		lower = " " + strings.Join(words, " ") + " "
	}
	if containsOne(lower, l.here) {
		return false
	}
	if l.others != "" { // words do not stand apart
		for o := range strings.FieldsSeq(l.others) {
			lower = strings.ReplaceAll(lower, o, "")
		}
		return slices.ContainsFunc(self, func(w string) bool { return strings.Contains(lower, w) })
	}
	begins := slices.DeleteFunc(slices.Clone(words[:min(2, len(words))]), func(w string) bool { return slices.Contains(nots, w) })
	if len(begins) > 0 && slices.Contains(strings.Fields(l.first), begins[0]) {
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

// containsOne reports whether a text contains one of some, separated by bars.
func containsOne(text, some string) bool {
	for one := range strings.SplitSeq(some, "|") {
		if strings.Contains(text, one) {
			return true
		}
	}
	return false
}

// nots are negations that may stand before the first word of a wish.
var nots = []string{"no", "non", "não", "nie"}

// atWork are things that people call their own while they work on them.
var atWork = strings.Fields("code function method class file files test tests branch repo repository project build pr commit change changes diff script query app api server " +
	"database table error bug projekt datei fonction fichier código proyecto archivo progetto codice função arquivo bestand terminal container docker " +
	"config configuration setup pipeline component page form button input output string list array loop variable type struct module package library " +
	"library's dependency dependencies import job deployment cluster pod service endpoint request response token session route schema migration model data " +
	"dataset notebook plot regex shell prompt log logs branch's first last second next previous question point mistake bad goal problem issue tests' " +
	"anwendung skript fehler frage abfrage klasse funktion änderung änderungen programme erreur serveur requête servidor consulta función pregunta servizio " +
	"errore domanda funzione erro pergunta fout vraag functie")

// quotes are signs that begin or end a quotation or code; behind an odd number of
// them it goes on.
const quotes = "\"`“”„«»「」『』"

// sentences yields the sentences of a message outside of code, quotations and fields, and
// not behind a line that announces what follows it.
func sentences(text string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		marks := 0
		for line := range words.OutsideFences(text) {
			code := strings.HasPrefix(line, "    ") || strings.HasPrefix(line, "\t") || strings.ContainsAny(line, "{}<>")
			line = strings.TrimSpace(line)
			code = code || line != "" && strings.IndexByte(">|#$", line[0]) >= 0
			for rest := line; rest != ""; {
				end := sentenceEnd(rest)
				s := strings.TrimSpace(rest[:end])
				if !code && marks%2 == 0 && !yield(s) {
					return
				}
				rest = strings.TrimSpace(rest[end:])
				for _, r := range s {
					if strings.ContainsRune(quotes, r) {
						marks++
					}
				}
			}
			if strings.HasSuffix(line, ":") || strings.HasSuffix(line, "：") {
				return // what follows may be somebody else's
			}
		}
	}
}

// short is a word such as "e.g", before its last full stop.
var short = regexp.MustCompile(`(?:^|\PL)\pL\.\pL$`)

// sentenceEnd returns where the first sentence of a text ends. The full stop of "e.g."
// ends none.
func sentenceEnd(text string) int {
	for n, r := range text {
		end := n + utf8.RuneLen(r)
		switch r {
		case '。', '！', '？', '；':
			return end
		case '.', '!', '?', ';':
			if (end == len(text) || text[end] == ' ') && (r != '.' || !short.MatchString(text[:n])) {
				return end
			}
		}
	}
	return len(text)
}
