package words

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestGolden checks how Each splits texts of ten languages, names and numbers into words.
// The golden file has function words in parentheses and light words with a tilde. Rewrite
// it with UPDATE=1 go test ./graphiti/words, and review the changes.
func TestGolden(t *testing.T) {
	const path = "testdata/golden.txt"
	file, err := os.ReadFile(path)
	must(t, err)
	var out bytes.Buffer
	for line := range strings.Lines(string(file)) {
		if !strings.HasPrefix(line, "> ") {
			continue
		}
		text := strings.TrimSpace(line[2:])
		fmt.Fprintf(&out, "> %s\n ", text)
		Each(text, func(w []byte, k Significance) bool {
			fmt.Fprintf(&out, map[Significance]string{Function: " (%s)", Light: " ~%s", Content: " %s"}[k], w)
			return true
		})
		out.WriteByte('\n')
	}
	if os.Getenv("UPDATE") != "" {
		must(t, os.WriteFile(path, out.Bytes(), 0o600))
		return
	}
	if diff := cmp.Diff(string(file), out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestOf checks that Of returns each word once, content words before light ones, and at
// most max words.
func TestIsCommon(t *testing.T) {
	const english, german = "we keep the secrets in the vault", "wir haben den Server und die Datenbank"
	for _, tc := range []struct {
		word, text string
		want       bool
	}{
		{"kept", english, true}, {"the", english, true}, {"vault", english, false}, {"kept", german, false}, {"curl", english, false},
		{"d", english, false}, {"9", english, false}, {"gemacht", german, true}, {"kept", "", false},
	} {
		if got := IsCommon(tc.word, tc.text); got != tc.want {
			t.Errorf("IsCommon(%q, %q) = %v, want %v", tc.word, tc.text, got, tc.want)
		}
	}
}

func TestOf(t *testing.T) {
	for _, tc := range []struct {
		text string
		max  int
		want []string
	}{
		{"the cat and the other cat", 5, []string{"cat"}},
		{"ねこと漢字", 5, []string{"漢", "漢字", "字", "ねこ", "こと"}},
		{"R01,0,0.15,0.42;820", 9, []string{"r01", "0", "0.15", "0.42", "820"}},
		{"1,2,3,4", 9, []string{"1", "2", "3", "4"}},
		{"TK;12,500;5,40", 9, []string{"tk", "12500", "5.40"}},
		{"alpha beta gamma", 2, []string{"alpha", "beta"}},
		{strings.Repeat("x", 65) + " short", 5, []string{"short"}},
		{"torn \xff\xfe bytes", 5, []string{"torn", "byte"}},
		{"", 5, nil},
	} {
		if got := Of(tc.text, tc.max); !slices.Equal(got, tc.want) {
			t.Errorf("%q: %q, want %q", tc.text, got, tc.want)
		}
	}
}

// TestFunctionWordsByLanguage checks that only function words of the message's
// language are omitted.
func TestFunctionWordsByLanguage(t *testing.T) {
	for text, want := range map[string][]string{
		"Where does my son study?": {"son", "studi"},
		"The war is over":          {"war"},
		"Which parts are MIT?":     {"part", "mit"},
		"Who moved to the US?":     {"move", "us"},
		"Ich war mit dem Hund da":  {"hund"},
		"Où est son chien ?":       {"chien"},
		"WHAT IS THIS?":            nil,
		"who am I":                 nil,
		"¿Dónde está el perro?":    {"perro"},
		"Gdzie jest moja mapa?":    {"mapa"},
		"где моя кошка":            {"кошка"},
	} {
		if got := Of(text, 9); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestAsksAndPersonal(t *testing.T) {
	for _, tc := range []struct {
		text           string
		asks, personal bool
	}{
		{"What is my cat called?", true, true},
		{"which database are we on", true, false},
		{"run the tests", false, false},
		{"show me the plan", false, false},
		{"I live in Graz", false, true},
		{"Wie heißt meine Katze?", true, true},
		{"führ die Tests aus", false, false},
		{"zeig mir ein Beispiel", false, false},
		{"Où habite ma fille ?", true, true},
		{"lance les tests", false, false},
		{"¿Dónde vive mi hermana?", true, true},
		{"Как зовут мою кошку?", true, true},
		{"напиши тест", false, false},
		{"復習アルゴリズムは何ですか。", true, false},
		{"私の猫はミソです。", false, true},
		{"テストを実行して", false, false},
		{"我的猫叫什么", true, true},
		{"运行测试", false, false},
		{"내 고양이 이름은 뭐야?", true, true},
		{"แมวของฉันชื่ออะไร", true, true},
		{"", false, false},
	} {
		if asks, personal := Asks(tc.text), Personal(tc.text); asks != tc.asks || personal != tc.personal {
			t.Errorf("%q: asks %t, personal %t", tc.text, asks, personal)
		}
	}
}

// TestSpellings checks that different spellings of a text have the same words.
func TestSpellings(t *testing.T) {
	for _, tc := range [][2]string{
		{"cafe\u0301", "café"},
		{"ｆｕｌｌ", "full"},
		{"soft\u00adware", "software"},
		{"ёлка", "елка"},
		{"\u1112\u1161\u11ab\u1100\u1173\u11af", "한글"},
		{"قِطَّتِي", "قطتي"},
		{"قطـــة", "قطة"},
		{"أحمد", "احمد"},
		{"می\u200cخواهم", "میخواهم"},
		{"שָׁלוֹם", "שלום"},
		{"γάτα", "γατα"},
		{"ज़रूरत", "जरूरत"},
	} {
		if got, want := Of(tc[0], 9), Of(tc[1], 9); !slices.Equal(got, want) || len(got) == 0 {
			t.Errorf("%q gives %q, want %q as of %q", tc[0], got, want, tc[1])
		}
	}
	for _, tc := range [][2]string{{"की", "के"}, {"й", "и"}} {
		if Term("क"+tc[0]) == Term("क"+tc[1]) {
			t.Errorf("%q and %q are one word, want two", tc[0], tc[1])
		}
	}
}

// TestQuestionMarks checks the question marks of several scripts.
func TestQuestionMarks(t *testing.T) {
	for text, want := range map[string]bool{
		"Πώς λέγεται η γάτα μου;": true,
		"Πώς λέγεται;":            true,
		"Ի՞նչ է իմ կատվի անունը":  true,
		"Կատուն Նուռ է։":          false,
		"ما اسم قطتي؟":            true,
		"x := 1;":                 false,
		"Is it “Remember that”?":  true,
	} {
		if got := HasQuestion(text); got != want {
			t.Errorf("HasQuestion(%q) = %v, want %v", text, got, want)
		}
	}
}

// TestIsQuestion_Entrusts checks that a polite request to remember a statement is no question.
func TestIsQuestion_Entrusts(t *testing.T) {
	for text, want := range map[string]bool{
		"Can you remember that my locker is number 4417?":       false,
		"Could you please keep in mind that we deploy late?":    false,
		"Kannst du dir bitte merken, dass mein Hund Rex heißt?": false,
		"Peux-tu retenir que mon chien s'appelle Rex ?":         false,
		"¿Puedes recordar que mi perro se llama Rex?":           false,
		"Можешь запомнить, что я живу в Риге?":                  false,
		"Can you remember what I said?":                         true,
		"Do you remember that we use Postgres?":                 true,
		"Can you check that it works?":                          true,
	} {
		if got := IsQuestion(text); got != want {
			t.Errorf("IsQuestion(%q) = %v, want %v", text, got, want)
		}
	}
}

func FuzzEach(f *testing.F) {
	for _, s := range []string{"getUserById 12,500 can't", "漢字とひらがな", "ภาษา", "\xff", "a_b.c'd"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		Each(text, func(w []byte, _ Significance) bool {
			if len(w) == 0 {
				t.Errorf("%q has an empty word", text)
			}
			return true
		})
	})
}

func TestAsksOfSelf(t *testing.T) {
	for text, want := range map[string]bool{
		"What is my favourite editor?":      true,
		"What do I prefer, tabs or spaces?": true,
		"How did I say I like my coffee":    true,
		"Fix my code.":                      false,
		"Why does the test fail?":           false,
		"Почему моя кошка не ест?":          true,
		"我的猫叫什么名字？":                         true,
		"Where is the parser?":              false,
		"The mind is a terrible thing":      false,
		"Wie heißt meine Katze?":            true,
		"Comment s'appelle mon chat ?":      true,
		"Où habite Paul ?":                  false,
		"¿Cómo se llama mi gato?":           true,
		"Come si chiama il mio gatto?":      true,
		"Qual é o nome do meu gato?":        true,
		"Hoe heet mijn kat?":                true,
		"who am i?":                         true,
	} {
		if got := AsksOfSelf([]byte(text)); got != want {
			t.Errorf("%q: asks about oneself: %v, want %v", text, got, want)
		}
	}
}
