package redact

import "strings"

const maxUser = 200 // bytes of an address's user, and of its password

// urls finds the passwords and tokens in addresses. They may hold characters that should
// be escaped: the last @ before a possible host counts.
func (s *scan) urls(list []found) []found {
	done := 0
	for at := range s.places("://") {
		if at < done || at == 0 || !isAlnum(s.text[at-1]) {
			continue
		}
		from := at + len("://")
		end := from
		for end < len(s.text) && end-from < 2*maxUser && !s.endsURL(end) {
			end++
		}
		if i := strings.Index(s.text[from:end], "://"); i >= 0 { // the next address of a list
			end = from + i
		}
		auth := s.text[from:end]
		at := hostAt(auth, strings.HasSuffix(s.lower[:at], "http") || strings.HasSuffix(s.lower[:at], "https"))
		if at < 0 {
			continue
		}
		user, pass, ok := strings.Cut(auth[:at], ":")
		switch {
		case strings.ContainsAny(user, "/@?#") || strings.Contains(auth, "[redacted:"):
		case ok && pass != "" && !port(pass) && !isPlaceholder(pass) && !sayPassword[strings.ToLower(pass)]:
			done = from + at
			list = append(list, found{from + len(user) + 1, done, "password-in-url"})
		case !ok && len(user) >= 20 && !wordy(user) && !isPlaceholder(user):
			done = from + at
			list = append(list, found{from, done, "token-in-url"})
		}
	}
	return list
}

func (s *scan) endsURL(at int) bool {
	c := s.text[at]
	return isSpace(c) || strings.IndexByte("\"'`<>\\", c) >= 0
}

// sayPassword are the placeholders for a password.
var sayPassword = wordsIn("password passwd pass pwd your-password yourpassword your_password user:password")

// hostAt returns the place of the @ before the host; -1 if there is none.
func hostAt(auth string, web bool) int {
	first := strings.IndexByte(auth, '@')
	if first < 0 {
		return -1
	}
	if i := strings.IndexAny(auth, "?#"); i > first {
		auth = auth[:i]
	}
	for at := strings.LastIndexByte(auth, '@'); at >= 0; at = strings.LastIndexByte(auth[:at], '@') {
		host := at+1 < len(auth) && (isAlnum(auth[at+1]) || strings.IndexByte("[$*_{", auth[at+1]) >= 0)
		// A path of the web may hold an @, as in /@scope/name.
		if path := web && at > first && auth[at-1] == '/'; host && !path {
			return at
		}
	}
	return -1
}

// port reports whether a possible password is a port and a path.
func port(pass string) bool {
	i := strings.IndexAny(pass, "/?#")
	return i > 0 && i <= 5 && strings.Trim(pass[:i], "0123456789") == ""
}
