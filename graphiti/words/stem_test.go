package words

import "testing"

// TestStem: the examples of Porter's paper, and letters with accents.
func TestStem(t *testing.T) {
	for word, want := range map[string]string{
		"caresses": "caress", "ponies": "poni", "ties": "ti", "caress": "caress", "cats": "cat",
		"feed": "feed", "agreed": "agre", "plastered": "plaster", "bled": "bled", "motoring": "motor", "sing": "sing",
		"conflated": "conflat", "troubled": "troubl", "sized": "size", "hopping": "hop", "tanned": "tan", "falling": "fall",
		"hissing": "hiss", "fizzed": "fizz", "failing": "fail", "filing": "file", "happy": "happi", "sky": "sky",
		"relational": "relat", "conditional": "condit", "rational": "ration", "valenci": "valenc", "digitizer": "digit",
		"conformabli": "conform", "radicalli": "radic", "differentli": "differ", "vileli": "vile", "analogousli": "analog",
		"vietnamization": "vietnam", "predication": "predic", "operator": "oper", "feudalism": "feudal", "decisiveness": "decis",
		"hopefulness": "hope", "callousness": "callous", "formaliti": "formal", "sensitiviti": "sensit", "sensibiliti": "sensibl",
		"triplicate": "triplic", "formative": "form", "formalize": "formal", "electriciti": "electr", "electrical": "electr", "goodness": "good",
		"revival": "reviv", "allowance": "allow", "inference": "infer", "airliner": "airlin", "gyroscopic": "gyroscop", "adjustable": "adjust",
		"defensible": "defens", "irritant": "irrit", "replacement": "replac", "adjustment": "adjust", "dependent": "depend", "adoption": "adopt",
		"homologou": "homolog", "communism": "commun", "activate": "activ", "angulariti": "angular", "effective": "effect", "bowdlerize": "bowdler",
		"probate": "probat", "rate": "rate", "cease": "ceas", "controll": "control", "roll": "roll", "mission": "mission", "region": "region",
		"ed": "ed", "ing": "ing", "y": "y", "yes": "ye", "as": "as", "": "",
		"köln": "koln", "école": "ecol", "écoles": "ecol", "ȩ": "e", "e\u0301cole": "ecol", "ß": "ß", "ﬁ": "ﬁ",
		"йод": "йод", "κάτω": "κατω", "が": "が", "한국어": "한국어", "नमस्ते": "नमस्ते", "x9": "x9", "\xffabc": "\xffabc",
	} {
		if got := string(stem(fold(nil, []byte(word)))); got != want {
			t.Errorf("%q is found as %q, want %q", word, got, want)
		}
	}
}

func FuzzStem(f *testing.F) {
	for _, s := range []string{"relational", "a\xcc", "ing", "sses", "é"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, word string) {
		if got := stem(fold(nil, []byte(word))); len(got) > len(word)+1 {
			t.Errorf("%q is found as %q", word, got)
		}
	})
}
