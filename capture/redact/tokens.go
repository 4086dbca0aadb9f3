package redact

import (
	"encoding/base64"
	"strings"
	"unicode/utf8"
)

// generated reports whether a generator may have made a token.
func generated(v string) bool {
	v = start(v)
	return !wordy(v) && !stands(v) && !describes(v) && entropy(v) > 2.5
}

// begins reports whether a word can begin at a place.
func (s *scan) begins(at int) bool {
	switch {
	case at == 0:
		return true
	case at > 1 && s.text[at-2] == '\\' && strings.IndexByte("nrt", s.text[at-1]) >= 0:
		return true
	}
	return !isName(s.text[at-1]) && s.text[at-1] != '.'
}

// tokenEnd returns where a token ends, or where the part of it ends that is read.
func (s *scan) tokenEnd(at int, also string) int {
	end := min(len(s.text), at+maxValue)
	for at < end && (isName(s.text[at]) || strings.IndexByte(also, s.text[at]) >= 0) {
		at++
	}
	return at
}

// rest returns the real end of a token that was read in part.
func (s *scan) rest(from, end int) int {
	for end-from >= maxValue && end < len(s.text) && isGraph(s.text[end]) {
		end++
	}
	return end
}

// dotted finds tokens that are known by their parts: Discord's, the old ones
// of Vault, and those of Z.ai and Ollama, 32 hexadecimal digits and some more.
func (s *scan) dotted() {
	done := 0
	for at := 0; ; at++ {
		i := strings.IndexByte(s.text[at:], '.')
		if i < 0 {
			return
		}
		at += i
		second := s.tokenEnd(at+1, "")
		if second-at < 7 || at < done || at == 0 || !isName(s.text[at-1]) {
			continue
		}
		from := at
		for from > 0 && at-from <= 32 && isName(s.text[from-1]) {
			from--
		}
		head := s.text[from:at]
		if len(head) > 32 {
			continue
		}
		third := second
		if second-at == 7 && second < len(s.text) && s.text[second] == '.' {
			third = s.tokenEnd(second+1, "")
		}
		switch {
		case head == "s" && second-at == 25 && generated(s.text[at+1:second]):
			s.found("vault-service-token", from, second)
			done = second
		case third-second > 26 && len(head) >= 23 && len(head) <= 28 && strings.IndexByte("MNO", head[0]) >= 0 && generated(head):
			s.found("discord-bot-token", from, third)
			done = third
		case len(head) == 32 && identifies(head) && second-at > 16 && generated(s.text[at+1:second]):
			s.found("api-key", from, second)
			done = second
		}
	}
}

// headers finds the credentials of requests: Authorization, cookies, and signatures and
// names in addresses.
func (s *scan) headers() {
	for at := range s.places("basic") {
		from := s.blanks(at + len("basic"))
		end := s.tokenEnd(from, "+/=")
		if s.begins(at) && from > at+len("basic") && end-from >= 6 && isBasic(s.text[from:end]) {
			s.found("basic-auth", from, end)
		}
	}
	for at := range s.places("cookie") {
		s.cookies(at + len("cookie"))
	}
}

// isBasic reports whether a text is a user's name and password, encoded.
func isBasic(v string) bool {
	b, err := base64.StdEncoding.DecodeString(v)
	if err != nil {
		if b, err = base64.RawStdEncoding.DecodeString(v); err != nil {
			return false
		}
	}
	user, pass, ok := strings.Cut(string(b), ":")
	return ok && (user != "" || pass != "") && utf8.Valid(b) && strings.IndexFunc(string(b), func(r rune) bool { return r < ' ' }) < 0
}

// cookies finds the cookies of sessions.
func (s *scan) cookies(at int) {
	at, _ = s.quoteEnd(at)
	if at = s.blanks(at); at >= len(s.text) || s.text[at] != ':' {
		return
	}
	end := at
	for end < len(s.text) && end-at < maxValue && s.text[end] != '\n' {
		end++
	}
	for at < end {
		i := strings.IndexByte(s.text[at:end], '=')
		if i < 0 {
			return
		}
		from := at + i + 1
		at = s.tokenEnd(from, "._~+/%")
		if at-from >= 16 && generated(s.text[from:at]) {
			s.found("cookie", from, s.rest(from, at))
		}
	}
}
