package redact

import "strings"

const (
	leastRandom = 16 // characters of a token's random part
	maxPrefix   = 12 // characters of its prefix
	maxSure     = 6  // characters of a prefix that names of other things rarely have
	maxHead     = 36 // characters before the random part
)

// identifiers are the prefixes of names that are no secrets: of messages, calls, hashes, builds
// and other things.
var identifiers = wordsIn(`ami app arn asset assets asst batch blob bot branch build bundle call card cart cc ch chatcmpl chunk cid cmp cmpl commit
	component conv conversation css cus customer deployment digest doc etag eni evt event fc file ft ftjob gen git h1 html id ig igw image img index
	in inv item job js key layer log main md5 mcp message model module msg node obj object order org page part pi pkg pm pod price prod product proj
	project ray ref release replica req request res resource resp response rev revision row rs rtb run section ses sess session seti sg sha sha1 sha224
	sha256 sha384 sha512 snap span src style sub subnet tag task test thread tmp tool toolu trace txn tx uid upload url user uuid v vendor version vol
	vpc worker ws x cache checksum cookie cursor group etag fingerprint hash href integrity nonce parent place primary public path short signature sum trace tree`)

// tokens finds tokens by their form: a short prefix that names the service, a sign, and random
// characters. Services keep inventing prefixes, so no list of them is complete.
func (s *scan) tokens(list []found) []found {
	for at := 0; at < len(s.text); at++ {
		if !isName(s.text[at]) {
			continue
		}
		from := at
		for at < len(s.text) && (isName(s.text[at]) || s.text[at] == '.' && at+1 < len(s.text) && isName(s.text[at+1])) {
			at++
		}
		if v := start(s.text[from:at]); at-from > leastRandom && s.begins(from) && (isPrefixed(v) || isDotted(v)) {
			list = append(list, found{from, at, "api-key"})
		}
	}
	return list
}

// isDotted reports whether a text has two random parts around dots, or one behind "s." of Vault.
func isDotted(v string) bool {
	parts, random := strings.Split(v, "."), 0
	for _, p := range parts {
		if len(p) >= leastRandom && isRandom(p, 0) {
			random++
		}
	}
	return len(parts) <= 3 && (random > 1 || random == 1 && len(parts) == 2 && parts[0] == "s")
}

// isPrefixed reports whether a text has a prefix, a sign and a random part.
func isPrefixed(v string) bool {
	sign := strings.IndexAny(v, "-_")
	if sign < 1 || strings.Contains(v, ".") || sign > maxPrefix || !isLetter(v[0]) || identifiers[strings.ToLower(v[:sign])] || isPlaceholder(v) || describes(v) {
		return false
	}
	for from := sign + 1; from < len(v) && from <= maxHead; {
		end := from
		for end < len(v) && v[end] != '-' && v[end] != '_' {
			end++
		}
		if isRandom(v[from:end], sign) {
			return true
		}
		from = end + 1
	}
	rest := v[sign+1:]
	if sign > maxSure || !mixes(rest, 35) {
		return false
	}
	for _, part := range strings.FieldsFunc(rest, func(r rune) bool { return r == '-' || r == '_' }) {
		if len(part) > 2 && wordLike(part) && strings.Trim(part, "0123456789") != "" {
			return false
		}
	}
	return isRandom(strings.NewReplacer("-", "", "_", "").Replace(rest), sign) // random characters may be signs
}

// isRandom reports whether a part of a token is random. prefix is the length of the token's
// prefix: names of branches, which are longer, may end with a hash.
func isRandom(v string, prefix int) bool {
	if strings.Trim(strings.ToLower(v), "0123456789abcdef") == "" && prefix > maxSure {
		return false
	}
	if identifies(v) {
		return true
	}
	digits := 0
	for i := range len(v) {
		if isDigit(v[i]) {
			digits++
		}
	}
	return len(v) >= leastRandom && (digits > 1 && digits < len(v)*3/4 || digits < 2 && mixes(v, 30)) && entropy(v) >= 3 && generated(v)
}
