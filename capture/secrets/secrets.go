// Package secrets takes credentials out of what people and models say. It owns
// the rules by which they are known; most are those of gitleaks, kept in
// rules.json as update.py makes it.
//
// It knows nothing of turns or memories, and imports none of our packages.
package secrets

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"sort"
	"strings"
	"sync"
)

//go:embed rules.json
var rulesJSON []byte

// rule is how one kind of secret is known.
type rule struct {
	ID       string      `json:"id"`
	Regex    string      `json:"regex"`
	Keywords []string    `json:"keywords"` // lower case; one must be in the text
	Entropy  float64     `json:"entropy"`  // bits for each character, at least
	Group    int         `json:"secretGroup"`
	Allow    []allowlist `json:"allow"`

	once sync.Once
	re   *regexp.Regexp
}

// allowlist is what is known not to be a secret.
type allowlist struct {
	Regexes   []string `json:"regexes"`
	Stopwords []string `json:"stopwords"` // lower case, in the secret
	Target    string   `json:"target"`    // secret, match or line

	once sync.Once
	res  []*regexp.Regexp
}

// ours are the rules for what stands in conversations and is not code. They
// come first: their names say more.
func ours() []*rule {
	return []*rule{
		{ID: "password-in-url", Regex: `\b[a-zA-Z][a-zA-Z0-9+.-]*://[^\s:/@"'<>]*:([^\s@/"'<>]{3,})@`, Keywords: []string{"://"}, Group: 1},
		{ID: "private-key", Regex: `-----BEGIN[ A-Z0-9_-]{0,100}PRIVATE KEY(?: BLOCK)?-----[\s\S]*?(?:-----END[ A-Z0-9_-]{0,100}PRIVATE KEY(?: BLOCK)?-----|\z)`, Keywords: []string{"private key"}},
		{ID: "api-key", Regex: `\b((?:sk|rk|pk)-[A-Za-z0-9_-]{18,})`, Keywords: []string{"sk-", "rk-", "pk-"}, Entropy: 3, Group: 1},
		{ID: "bearer-token", Regex: `(?i)\bbearer\s+([A-Za-z0-9._~+/-]{20,}=*)`, Keywords: []string{"bearer"}, Entropy: 3.5, Group: 1},
		{
			ID:       "env-secret",
			Regex:    `(?m)^[ \t]*(?:export[ \t]+|set[ \t]+)?(?:[A-Z][A-Z0-9_]*_)?(?:PASSWORD|PASSWD|PASSPHRASE|SECRET|TOKEN|API_?KEY|PRIVATE_KEY|ACCESS_KEY|SECRET_KEY|AUTH_KEY|CREDENTIALS?)(?:_(?:ID|VALUE|PROD|DEV|TEST|STAGING|LIVE|OLD|NEW|[0-9]+))?[ \t]*=[ \t]*["']?([^\s"']{6,})`,
			Keywords: []string{"password", "passwd", "passphrase", "secret", "token", "apikey", "api_key", "private_key", "access_key", "auth_key", "credential"},
			Group:    1,
			Allow:    []allowlist{{Regexes: []string{`^[$%<{(\[]`, `(?i)^(?:your|my|the|change|example|placeholder|dummy|insert|todo|replace|redacted)`, `^(?i)(?:x+|\*+|\.+|-+)$`, `^(?:os|process|env|System|config|settings)[.\[(]`, `^/`}, Target: "secret"}},
		},
	}
}

// Redactor takes secrets out of texts. It is safe for concurrent use.
type Redactor struct {
	rules []*rule
	allow []allowlist // of all rules
}

// New reads the rules. What they look for is compiled when it is needed first.
func New() (*Redactor, error) {
	var file struct {
		Allow []allowlist `json:"allow"`
		Rules []*rule     `json:"rules"`
	}
	if err := json.Unmarshal(rulesJSON, &file); err != nil {
		return nil, fmt.Errorf("read the rules of secrets: %w", err)
	}
	return &Redactor{rules: append(ours(), file.Rules...), allow: file.Allow}, nil
}

// found is a secret's place in a text.
type found struct {
	start, end int
	id         string
}

// Redact replaces every secret with [redacted:<kind>] and says how many there
// were.
func (r *Redactor) Redact(text string) (string, int) {
	if len(text) < 8 {
		return text, 0
	}
	lower := strings.ToLower(text)
	var seen trigrams
	seen.add(lower)
	var all []found
	for _, rule := range r.rules {
		if rule.mayBeIn(lower, &seen) {
			all = r.find(all, rule, text)
		}
	}
	if len(all) == 0 {
		return text, 0
	}
	return replace(text, all)
}

func (r *rule) mayBeIn(lower string, seen *trigrams) bool {
	for _, k := range r.Keywords {
		if seen.mayHold(k) && strings.Contains(lower, k) {
			return true
		}
	}
	return len(r.Keywords) == 0
}

// trigrams is what three bytes in a row a text holds, or may: most of the some
// 200 keywords need not be looked for.
type trigrams [1 << 10]uint64

func trigram(s string) uint32 {
	h := uint32(s[0])<<16 | uint32(s[1])<<8 | uint32(s[2])
	return h * 2654435761 >> 16 // Knuth's multiplicative hash
}

func (t *trigrams) add(s string) {
	for i := 0; i+3 <= len(s); i++ {
		h := trigram(s[i:])
		t[h>>6] |= 1 << (h & 63)
	}
}

func (t *trigrams) mayHold(s string) bool {
	for i := 0; i+3 <= len(s); i++ {
		if h := trigram(s[i:]); t[h>>6]&(1<<(h&63)) == 0 {
			return false
		}
	}
	return true
}

func (r *Redactor) find(all []found, rule *rule, text string) []found {
	rule.once.Do(func() { rule.re = regexp.MustCompile(rule.Regex) })
	for _, m := range rule.re.FindAllStringSubmatchIndex(text, -1) {
		start, end := rule.secret(m)
		if start < 0 || start == end {
			continue
		}
		secret := text[start:end]
		if rule.Entropy > 0 && entropy(secret) <= rule.Entropy {
			continue
		}
		if allowed(r.allow, secret, text, m) || allowed(rule.Allow, secret, text, m) {
			continue
		}
		all = append(all, found{start, end, rule.ID})
	}
	return all
}

// secret is the part of a match that is the secret itself: the group that the
// rule names, else the first one that took part, else the whole.
func (r *rule) secret(m []int) (start, end int) {
	if r.Group > 0 && 2*r.Group+1 < len(m) {
		return m[2*r.Group], m[2*r.Group+1]
	}
	for i := 2; i+1 < len(m); i += 2 {
		if m[i] >= 0 && m[i] < m[i+1] {
			return m[i], m[i+1]
		}
	}
	return m[0], m[1]
}

// allowed reports whether a secret is known to be none; match is where the rule
// found it in text.
func allowed(lists []allowlist, secret, text string, match []int) bool {
	for i := range lists {
		l := &lists[i]
		l.once.Do(func() {
			for _, re := range l.Regexes {
				l.res = append(l.res, regexp.MustCompile(re))
			}
		})
		target := secret
		switch l.Target {
		case "match":
			target = text[match[0]:match[1]]
		case "line":
			target = lineAround(text, match[0], match[1])
		}
		for _, re := range l.res {
			if re.MatchString(target) {
				return true
			}
		}
		lower := strings.ToLower(secret)
		for _, w := range l.Stopwords {
			if strings.Contains(lower, w) {
				return true
			}
		}
	}
	return false
}

// maxAround bounds what is looked at of a line on each side of a place: a text
// may be one line with thousands of them.
const maxAround = 512

// lineAround is the text from the start of the line of one place to the end of
// the line of another, or as much of it as may be looked at.
func lineAround(text string, from, to int) string {
	before, after := text[max(0, from-maxAround):from], text[to:min(len(text), to+maxAround)]
	before = before[strings.LastIndexByte(before, '\n')+1:]
	if i := strings.IndexByte(after, '\n'); i >= 0 {
		after = after[:i]
	}
	return text[from-len(before) : to+len(after)]
}

// entropy is Shannon's, in bits for each character.
func entropy(s string) (bits float64) {
	count := make(map[rune]int)
	n := 0
	for _, c := range s {
		count[c]++
		n++
	}
	for _, c := range count {
		p := float64(c) / float64(n)
		bits -= p * math.Log2(p)
	}
	return bits
}

// replace takes the secrets out. Where two overlap the first one stands for
// both.
func replace(text string, all []found) (string, int) {
	sort.SliceStable(all, func(i, j int) bool { return all[i].start < all[j].start })
	var b strings.Builder
	at, n := 0, 0
	for _, f := range all {
		if f.start < at {
			at = max(at, f.end) // the rest of one that overlaps
			continue
		}
		b.WriteString(text[at:f.start])
		b.WriteString("[redacted:" + f.id + "]")
		at = f.end
		n++
	}
	b.WriteString(text[at:])
	return b.String(), n
}
