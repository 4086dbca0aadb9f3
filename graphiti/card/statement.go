package card

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	uax29 "github.com/clipperhouse/uax29/v2/sentences"

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
			m.Alone = m.Alone && one.begun && !(one.Instructs && Acts(one.Text))
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
	return words.Nods(s) && !strings.ContainsFunc(s, foreign) && !strings.ContainsFunc(s[size:], unicode.IsUpper) &&
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
	ascii := isASCII(lower)
	holds := func(p phrase) bool { return (p.ascii || !ascii) && strings.Contains(lower, p.text) }
	for n := range askPhrases {
		if slices.ContainsFunc(askPhrases[n], holds) {
			asked = append(asked, n)
		}
	}
	return asked, slices.ContainsFunc(lastingPhrases, holds)
}

// phrase is a phrase to search for. An ASCII text contains only ASCII phrases.
type phrase struct {
	text  string
	ascii bool
}

// askPhrases has the phrases of request of each of tongues, and lastingPhrases the marks
// that may make a rule.
var askPhrases, lastingPhrases = func() (ask [][]phrase, lasting []phrase) {
	for _, l := range tongues {
		var list []phrase
		for _, p := range strings.Split(l.ask+"|"+l.forget+"|"+l.drops, "|") {
			list = append(list, phrase{p, isASCII(p)})
		}
		ask = append(ask, list)
	}
	for p, m := range marks {
		if m.lasting || m.prefers {
			lasting = append(lasting, phrase{p, isASCII(p)})
		}
	}
	return ask, lasting
}()

// statement parses a sentence such as "Please remember that we use tabs".
func statement(s string, asked []int, ruled bool) (one Statement, ok bool) {
	s = strings.Join(strings.Fields(s), " ")
	if asks(s) {
		return one, false
	}
	if one, ok = wish(strings.TrimRight(s, ".!;。！； "), asked); ok || !ruled {
		return one, ok
	}
	r, ok := readRule(strings.TrimLeft(s, "-*• "))
	return Statement{Act: Rule, Text: r.Text, Instructs: true, Personal: r.Everywhere || !namesProject(s), begun: begins(s) && isPlain(s, "")}, ok
}

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
		if !isWordRune(r) && !strings.ContainsRune(" .,!'’。、，！", r) && !strings.ContainsRune(others, r) && !(strings.ContainsRune("-/", r) && inner(at)) {
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
	name string

	// A request begins with ask or forget, optionally after words of please, and continues
	// with a colon or that: "please remember that …". A text that begins with a word of not
	// makes it another sentence.
	please, ask, forget, that, not string

	// In languages with other word orders, forms and forgets are patterns of whole
	// sentences that contain ask or forget, with the text as a group.
	forms, forgets []string

	// subjects are patterns of whole messages that ask to forget a subject, the group, and
	// drops has a phrase of each, apart from those of ask and forget.
	drops    string
	subjects []string

	// Words of self refer to the author, and words of first do so only at the beginning of
	// a text. Words of others contain a word of self but do not refer to the author.
	// Phrases of here refer to a project, and words of answer to answers.
	self, first, others, here, answer string

	ends string // of requests, in languages with the verb at the end
}

// tongues are the languages of requests.
var tongues = []tongue{
	{name: "English", please: "please|pls|ok|okay|and|also|hi|hey|hello", ask: "remember|remember this", forget: "forget", answer: "answer answers answering reply replies respond response responses", that: "that ", not: "for|time|day|one|thing|when|last|first|idea",
		drops: "memor|you know", subjects: []string{
			`^(?:(?:can|could|would|will) you |you (?:can|may|should) |i(?:'d like| want| need) you to )?(?:(?:please|just|now),? )*(?:forget|stop remembering|(?:don't|do not|never) remember)(?: about| (?:everything|all)(?: you know)? about| what (?:you know|i (?:said|told you)) about)? (.+?)(?: any ?more| from (?:your|the) memory| for good| now|,? please)*$`,
			`^(?:(?:can|could|would|will) you |you (?:can|may|should) |i(?:'d like| want| need) you to )?(?:(?:please|just|now),? )*(?:delete|remove|erase|clear|wipe|drop|purge) (?:(?:what|whatever|everything|all|anything)(?: that)? you (?:know|remember|stored|have)(?: about| of| on)? (.+)|(.+) (?:from|in|out of) (?:your |the )?memor\pL+)$`,
		},
		self: "i my mine me myself", here: " here | this repo | this project | this codebase "},
	{name: "German", please: "bitte|und|auch", ask: "merk dir|merke dir|merken sie sich", forget: "vergiss|vergessen sie", answer: "antworte antworten antwort antwortest", that: "dass |daß ",
		drops: "vergess|gedächtnis|was du|merk", subjects: []string{
			`^(?:bitte,? )?(?:vergiss|vergesst|vergessen sie)(?: bitte)?(?: alles (?:über|zu))? (.+)$`,
			`^(?:kannst|könntest|können|würdest) (?:du|sie) (?:bitte )?(.+?) (?:vergessen|aus (?:deinem|dem|ihrem) gedächtnis (?:löschen|entfernen))$`,
			`^(?:bitte,? )?(?:lösche?|entferne?|streiche?) (?:bitte )?(?:alles,? was du (?:über|zu) (.+) weißt|(.+) aus (?:deinem|dem|ihrem) gedächtnis)$`,
			`^merke? dir (.+) nicht(?: mehr)?$`,
		},
		self: "ich mein meine meinem meinen meiner meines mir mich", here: " hier | diesem projekt | diesem repo | dieses projekt "},
	{name: "French", please: "s['’]il (?:te|vous) pla[iî]t|stp|svp|et|bien", ask: "retiens|retenez|souviens-toi|souvenez-vous", forget: "oublie|oubliez", answer: "réponds répondre réponse réponses", that: "que |qu['’]",
		drops: "oublier|mémoire", subjects: []string{
			`^(?:(?:peux-tu|pouvez-vous|tu peux) )?(?:s'il te pla[iî]t,? )?(?:oublie|oubliez|oublier) (.+?)(?:,? s'il te pla[iî]t)?$`,
			`^(?:efface|effacez|supprime|supprimez|enlève) (.+) de (?:ta|votre|la) mémoire$`,
			`^ne (?:retiens|retenez) (?:pas|plus) (.+)$`,
		},
		self: "je j moi me m mon ma mes", here: " ici | ce projet | ce dépôt "},
	{name: "Spanish", please: "por favor|y", ask: "recuerda|recuerde", forget: "olvida|olvide", answer: "responde responder respuesta respuestas contesta", that: "que ",
		drops: "olvid|memoria", subjects: []string{
			`^(?:¿?(?:puedes|podrías|puede) )?(?:por favor,? )?(?:olvida|olvide|olvidar|olvídate de) (.+?)(?:,? por favor)?$`,
			`^(?:borra|borre|elimina|elimine|quita) (.+) de (?:tu|su|la) memoria$`,
		},
		self: "yo mi mis me mí mío mía conmigo", first: "prefiero vivo trabajo soy tengo uso", here: " aquí | este proyecto | este repo "},
	{name: "Italian", please: "per favore|per piacere|e", ask: "ricorda|ricordati", forget: "dimentica|dimenticati", answer: "rispondi rispondere risposta risposte", that: "che ",
		drops: "dimentica|memoria", subjects: []string{
			`^(?:(?:puoi|potresti) )?(?:per favore,? )?(?:dimentica|dimenticare|dimenticati(?: di)?) (.+?)(?:,? per favore)?$`,
			`^(?:cancella|elimina|rimuovi) (.+) dalla (?:tua )?memoria$`,
		},
		self: "io mi mio mia miei mie me", first: "preferisco abito vivo lavoro sono ho uso", here: " qui | questo progetto | questo repo "},
	{name: "Portuguese", please: "por favor|e", ask: "lembra-te|lembra|lembre-se|lembre", forget: "esquece|esqueça|esqueça-se", answer: "responde responda responder resposta respostas", that: "que |de que ",
		drops: "esquec|memória", subjects: []string{
			`^(?:(?:podes|pode|poderia) )?(?:por favor,? )?(?:esquece|esqueça|esquecer) (.+?)(?:,? por favor)?$`,
			`^(?:apaga|apague|remove|remova|elimina) (.+) da (?:tua |sua )?memória$`,
		},
		self: "eu meu minha meus minhas mim me comigo", first: "prefiro moro vivo trabalho sou tenho uso", here: " aqui | este projeto | neste projeto | deste projeto "},
	{name: "Dutch", please: "alsjeblieft|alstublieft|en", ask: "onthoud", forget: "vergeet", answer: "antwoord antwoorden antwoordt", that: "dat ", not: "voor|even|maar|goed",
		drops: "vergeten|geheugen", subjects: []string{
			`^(?:alsjeblieft,? )?vergeet (.+)$`,
			`^(?:kun|kan|wil) je (.+) vergeten$`,
			`^(?:verwijder|wis) (.+) uit je geheugen$`,
		},
		self: "ik mijn mij me", here: " hier | dit project | deze repo "},
	{name: "Russian", please: "пожалуйста|и", ask: "запомни|запомните|помни", forget: "забудь|забудьте", answer: "отвечай отвечать ответ ответы ответов", that: "что ",
		drops: "забыть|памяти", subjects: []string{
			`^(?:пожалуйста,? )?(?:можешь |можете )?(?:забудь|забудьте|забыть)(?: про| об?)? (.+)$`,
			`^(?:удали|удалите|сотри|сотрите) (.+) из (?:своей |твоей )?памяти$`,
		},
		self: "я меня мне мной мой моя моё мое мои моего моей моих моему моим мою", here: " здесь | этом проекте | этот проект | этого проекта "},
	{name: "Polish", please: "proszę|i", ask: "zapamiętaj|zapamiętajcie|pamiętaj", forget: "zapomnij|zapomnijcie", answer: "odpowiadaj odpowiadać odpowiedź odpowiedzi", that: "że |iż ",
		drops: "zapomnieć|pamięci", subjects: []string{
			`^(?:proszę,? )?(?:(?:czy )?możesz )?(?:zapomnij|zapomnijcie|zapomnieć)(?: o)? (.+)$`,
			`^(?:usuń|skasuj|wymaż) (.+) z (?:twojej |swojej )?pamięci$`,
		},
		self: "ja mój moja moje moi mojego mojej moich mojemu moim moją mnie mi mną", first: "jestem mam lubię wolę mieszkam pracuję używam", here: " tutaj | ten projekt | tym projekcie | tego projektu "},
	{name: "Japanese", ends: "ください 下さい てね て こと しろ せよ", ask: "覚えておいて", forget: "忘れて", answer: "答え 返信 回答", forgets: []string{`^(.+?)(?:(?:という)?こと)?(?:を|は)、?忘れて(?:ください|下さい|ね)?$`}, forms: []string{`^覚えておいて(?:ください|下さい|ね)?[:：、]\s*(.+)$`, `^(.+?)(?:という?こと)?(?:を|は|と)、?覚えておいて(?:ください|下さい|ね)?$`},
		drops: "記憶|メモリ", subjects: []string{
			`^(.+?)を(?:メモリ|記憶)から(?:削除|消去|消)し?て.*$`,
		},
		self: "私 僕 俺", others: "私有 私立 私設", here: "このプロジェクト|このリポジトリ|ここでは"},
	{name: "Chinese", ask: "记住|記住", forget: "忘记|忘掉|忘記", answer: "回答 答复 回复", forgets: []string{`^(?:请你?|請你?)?(?:帮我|幫我)?(?:忘记|忘掉|忘記)(?:[:：,，]\s*(.+)|([^了过過什怎:：,，].+))$`}, forms: []string{`^(?:请你?|請你?)?(?:帮我|幫我)?(?:记住|記住)(?:[:：,，]\s*(.+)|([^了过過这這那它没沒不什怎:：,，].+))$`},
		drops: "记忆|記憶", subjects: []string{
			`^(?:请|請)?(?:从|從)?(?:你的)?(?:记忆|記憶)(?:中|里|裡)?(?:删除|刪除|移除)(.+)$`,
		},
		self: "我", others: "我们 我們", here: "这个项目|這個專案|这个仓库|本项目|这里"},
	{name: "Korean", ends: "줘 줘요 세요 라 마 할_것", ask: "기억해", forget: "잊어", answer: "대답 답변 답해", forgets: []string{`^(.+?)(?:이?라고|다고|(?:다는|인) (?:것을|걸|것은|건)) ?잊어 ?(?:줘|줘요|주세요|버려)$`}, forms: []string{`^기억해 ?(?:줘|주세요|둬|두세요)?[:：,]\s*(.+)$`, `^(.+?)(?:이?라고|다고|(?:다는|인) (?:것을|걸)) ?기억해 ?(?:줘|줘요|주세요|둬|두세요)$`, `^(.+?)이?라고 기억해$`},
		drops: "잊어", subjects: []string{
			`^(.+?)(?:을|를|은|는)? ?잊어 ?(?:줘|줘요|주세요|버려)$`,
		},
		self: "나는 난 내가 나의 나를 나한테 저는 제가 저의 저를 저한테", first: "내 나 제 저", here: "이 프로젝트|이 저장소|여기"},
}

// wishes has the patterns of requests to remember or to forget, for each of tongues.
var wishes = func() (all [][]wishForm) {
	for n := range tongues {
		l := &tongues[n]
		forms := func(act Act, verbs string, own []string) (list []wishForm) {
			if own == nil {
				please := `(?:` + l.please + `)`
				own = []string{`^(?:` + please + `,? )*(?:` + verbs + `)(?:,? ` + please + `)*(?:,? (?:` + l.that + `)| ?[:：] ?)(.+)$`}
			}
			for _, f := range own {
				list = append(list, wishForm{act, regexp.MustCompile(`(?i)` + f)})
			}
			return list
		}
		all = append(all, append(forms(Remember, l.ask, l.forms), forms(Forget, l.forget, l.forgets)...))
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
		for _, p := range tongues[n].subjects {
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
	if l.forms != nil {
		return slices.ContainsFunc(strings.Fields(l.answer), func(w string) bool { return strings.Contains(lower, w) })
	}
	return slices.ContainsFunc(strings.FieldsFunc(lower, func(r rune) bool { return !unicode.IsLetter(r) }), func(w string) bool { return slices.Contains(strings.Fields(l.answer), w) })
}

// says reports whether the text of a request is complete: neither a mere reference nor the
// end of a quotation.
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

// ofSelf reports whether the text of a request is about the person, not about their work.
func (l *tongue) ofSelf(said string) bool {
	lower, self := strings.ToLower(strings.ReplaceAll(said, "’", "'")), strings.Fields(l.self)
	words := strings.FieldsFunc(lower, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(`,.:;!"()`, r) })
	if l.forms == nil {
		lower = " " + strings.Join(words, " ") + " "
	}
	if containsOne(lower, l.here) {
		return false
	}
	if l.others != "" { // no spaces between words
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
			for s := range sentencesOf(line) {
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

// abbreviations are common ones with a vowel, of the languages of tongues, in lower case.
// Those without a vowel, such as Dr and Nr, need no list.
var abbreviations = strings.Fields("prof no inc co corp av ave mme mlle me sra srta sig dott ing arch avv etc ca inkl evtl usw abs tel est dept fig vol ed approx " +
	"feat incl ext ul al inż im проф ул им ок руб тел см та")

// isAbbreviation reports whether the full stop after a word belongs to the word: it is an
// initial, a common abbreviation, or has no vowel.
func isAbbreviation(word string) bool {
	word = strings.TrimLeftFunc(word, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	if utf8.RuneCountInString(word) == 1 {
		r, _ := utf8.DecodeRuneInString(word)
		return unicode.IsLetter(r)
	}
	lower := strings.ToLower(word)
	if i := strings.LastIndexByte(lower, '.'); i > 0 && i == len(lower)-2 && lower[i+1] >= 'a' { // e.g, z.B
		return true
	}
	if slices.Contains(abbreviations, lower) {
		return true
	}
	return len(word) <= 12 && !strings.ContainsFunc(lower, func(r rune) bool {
		return !unicode.IsLetter(r) || strings.ContainsRune("aeiouyàáâãäåæèéêëìíîïòóôõöøùúûüýąęóаеёиоуыэюя", r) || r >= firstUnspaced
	})
}

// sentencesOf yields the sentences of a text, as Unicode defines them, apart from the full stops
// of abbreviations.
func sentencesOf(text string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		from := 0
		for it := uax29.FromString(text); it.Next(); {
			s := strings.TrimSpace(text[from:it.End()])
			word, stopped := strings.CutSuffix(s[strings.LastIndexFunc(s, unicode.IsSpace)+1:], ".")
			if stopped && it.End() < len(text) && isAbbreviation(word) {
				continue
			}
			if from = it.End(); s != "" && !yield(s) {
				return
			}
		}
	}
}
