package redact

import (
	"encoding/base64"
	"strings"
	"unicode/utf8"
)

// prefixed is a kind of token that says in its first characters what it is.
type prefixed struct {
	id, prefix string
	least      int    // characters that follow
	also       string // characters in it beside letters, digits, - and _
	lower      string
}

// prefixes are those of tokens that gitleaks does not know, or knows in a
// length that their providers have changed since. What follows may be somewhat
// shorter here than it is now.
var prefixes = lowerToo([]prefixed{
	{id: "api-key", prefix: "sk-", least: 18}, // OpenAI, Anthropic, and most that speak their language
	{id: "api-key", prefix: "rk-", least: 18},
	{id: "api-key", prefix: "pk-", least: 18},
	{id: "groq-api-key", prefix: "gsk_", least: 40},
	{id: "xai-api-key", prefix: "xai-", least: 40},
	{id: "cerebras-api-key", prefix: "csk-", least: 30},
	{id: "fireworks-api-key", prefix: "fw_", least: 20},
	{id: "replicate-api-token", prefix: "r8_", least: 30},
	{id: "together-api-key", prefix: "tgp_v1_", least: 30},
	{id: "nvidia-api-key", prefix: "nvapi-", least: 40},
	{id: "perplexity-api-key", prefix: "pplx-", least: 30},
	{id: "jina-api-key", prefix: "jina_", least: 30},
	{id: "voyage-api-key", prefix: "pa-", least: 36},
	{id: "tavily-api-key", prefix: "tvly-", least: 20},
	{id: "firecrawl-api-key", prefix: "fc-", least: 30},
	{id: "brave-search-api-key", prefix: "BSA", least: 24},
	{id: "langsmith-api-key", prefix: "lsv2_pt_", least: 30},
	{id: "langsmith-api-key", prefix: "lsv2_sk_", least: 30},
	{id: "pinecone-api-key", prefix: "pcsk_", least: 40},
	{id: "wandb-api-key", prefix: "wandb_v1_", least: 40},
	{id: "runpod-api-key", prefix: "rpa_", least: 30},
	{id: "e2b-api-key", prefix: "e2b_", least: 30},
	{id: "apify-api-token", prefix: "apify_api_", least: 30},
	{id: "elevenlabs-api-key", prefix: "sk_", least: 40},
	{id: "devin-api-key", prefix: "cog_", least: 40},

	{id: "google-oauth-token", prefix: "ya29.", least: 20, also: "."},
	{id: "google-refresh-token", prefix: "1//0", least: 30},
	{id: "google-client-secret", prefix: "GOCSPX-", least: 20},
	{id: "gcp-api-key", prefix: "AQ.Ab8", least: 40},
	{id: "supabase-token", prefix: "sbp_", least: 30},
	{id: "supabase-secret-key", prefix: "sb_secret_", least: 20},
	{id: "vercel-token", prefix: "vck_", least: 24},
	{id: "vercel-token", prefix: "vca_", least: 24},
	{id: "vercel-token", prefix: "vci_", least: 24},
	{id: "vercel-token", prefix: "vcp_", least: 24},
	{id: "vercel-token", prefix: "vcr_", least: 24},
	{id: "vercel-token", prefix: "vercel_blob_rw_", least: 24},
	{id: "cloudflare-token", prefix: "cfk_", least: 30},
	{id: "cloudflare-token", prefix: "cfut_", least: 30},
	{id: "cloudflare-token", prefix: "cfat_", least: 30},
	{id: "neon-api-key", prefix: "napi_", least: 40},
	{id: "render-api-key", prefix: "rnd_", least: 24},
	{id: "deno-token", prefix: "ddp_", least: 30},
	{id: "docker-token", prefix: "dckr_pat_", least: 20},
	{id: "docker-token", prefix: "dckr_oat_", least: 20},
	{id: "docker-swarm-token", prefix: "SWMTKN-1-", least: 50},
	{id: "tailscale-key", prefix: "tskey-", least: 20},
	{id: "circleci-token", prefix: "CCIPAT_", least: 40},
	{id: "buildkite-token", prefix: "bkua_", least: 40},
	{id: "atlassian-api-token", prefix: "ATATT3", least: 60, also: "="},
	{id: "atlassian-api-token", prefix: "ATCTT3", least: 60, also: "="},
	{id: "bitbucket-token", prefix: "ATBB", least: 24},
	{id: "figma-token", prefix: "figd_", least: 30},
	{id: "posthog-key", prefix: "phx_", least: 30},
	{id: "webhook-secret", prefix: "whsec_", least: 24, also: "+/="},
	{id: "resend-api-key", prefix: "re_", least: 30},
	{id: "mailersend-token", prefix: "mlsn.", least: 30},
	{id: "notion-api-token", prefix: "secret_", least: 43},
	{id: "slack-token", prefix: "xoxc-", least: 30},
	{id: "slack-token", prefix: "xoxd-", least: 30, also: "%+/="},
	{id: "slack-token", prefix: "xoxe-", least: 30},
	{id: "crates-io-token", prefix: "cio", least: 32},
	{id: "nuget-api-key", prefix: "oy2", least: 40},
	{id: "elastic-api-key", prefix: "essu_", least: 40, also: "="},
	{id: "astra-token", prefix: "AstraCS:", least: 30, also: ":"},
	{id: "mongodb-atlas-secret", prefix: "mdb_sa_sk_", least: 30},
	{id: "cockroach-api-key", prefix: "CCDB1_", least: 40},
	{id: "vault-token", prefix: "hvs.", least: 24},
	{id: "doppler-token", prefix: "dp.st.", least: 30, also: "."},
	{id: "razorpay-key", prefix: "rzp_live_", least: 14},
})

func lowerToo(list []prefixed) []prefixed {
	for i := range list {
		list[i].lower = strings.ToLower(list[i].prefix)
	}
	return list
}

// tokens finds what says itself that it is one.
func (s *scan) tokens() {
	for i := range prefixes {
		p, done := &prefixes[i], 0
		for at := range s.places(p.lower) {
			from := at + len(p.prefix)
			if at < done || s.text[at:from] != p.prefix || !s.begins(at) {
				continue
			}
			end := s.tokenEnd(from, p.also)
			if rest := s.text[from:end]; len(rest) >= p.least && generated(rest) {
				done = s.rest(from, end)
				s.found(p.id, at, done)
			}
		}
	}
	s.dotted()
}

// generated reports whether a token is as generators make them.
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

// tokenEnd is where a token ends that goes on at a place, or where as much of it
// ends as is looked at.
func (s *scan) tokenEnd(at int, also string) int {
	end := min(len(s.text), at+maxValue)
	for at < end && (isName(s.text[at]) || strings.IndexByte(also, s.text[at]) >= 0) {
		at++
	}
	return at
}

// rest is where a token really ends of which not all was looked at.
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

// headers finds what proves who asks in a request: its Authorization and
// cookies, signatures and names in addresses.
func (s *scan) headers() {
	for at := range s.places("bearer") {
		from := s.blanks(at + len("bearer"))
		if end := s.tokenEnd(from, "._~+/="); s.begins(at) && from > at+len("bearer") && end-from >= 16 && generated(s.text[from:end]) {
			s.found("bearer-token", from, s.rest(from, end))
		}
	}
	for at := range s.places("basic") {
		from := s.blanks(at + len("basic"))
		end := s.tokenEnd(from, "+/=")
		if s.begins(at) && from > at+len("basic") && end-from >= 6 && isBasic(s.text[from:end]) {
			s.found("basic-auth", from, end)
		}
	}
	for at := range s.places("authorization") {
		s.authorization(at + len("authorization"))
	}
	for at := range s.places("cookie") {
		s.cookies(at + len("cookie"))
	}
	for i := range inURLs {
		for at := range s.places(inURLs[i].before) {
			from := at + len(inURLs[i].before)
			if inURLs[i].id == "webhook" {
				from = s.lastPart(from)
			}
			end := s.tokenEnd(from, "%+=.~")
			if end-from >= 16 && generated(s.text[from:end]) && !strings.HasPrefix(s.text[end:], "/") {
				s.found(inURLs[i].id, from, s.rest(from, end))
			}
		}
	}
}

// options are those with which commands are told a password.
var options = []struct{ command, option string }{
	{"sshpass", " -p"}, {"redis-cli", " -a"}, {"mysql", " -p"}, {"mariadb", " -p"}, {"mongosh", " -p"}, {"docker login", " -p"},
}

// commands finds passwords in options that have but a letter.
func (s *scan) commands() {
	for _, o := range options {
		for at := range s.places(o.command) {
			line := s.text[at:min(len(s.text), at+maxUser)]
			line, _, _ = strings.Cut(line, "\n")
			i := strings.Index(line, o.option)
			if i < 0 {
				continue
			}
			from := s.blanks(at + i + len(o.option))
			from, quoted := s.quoteEnd(from)
			end := from
			for end < at+len(line) && !isSpace(s.text[end]) && (!quoted || s.text[end] != s.text[from-1]) {
				end++
			}
			if v := s.text[from:end]; telling(v) && !stands(v) && !describes(v) || quoted && len(v) >= 4 && !stands(v) && !describes(v) {
				s.found("password", from, end)
			}
		}
	}
}

// inURLs is what stands before secrets in addresses.
var inURLs = []struct{ before, id string }{
	{"discord.com/api/webhooks/", "webhook"},
	{"discordapp.com/api/webhooks/", "webhook"},
	{"hooks.zapier.com/hooks/catch/", "webhook"},
	{"hook.make.com/", "webhook"},
	{"chat.googleapis.com/v1/spaces/", "webhook"},
	{"?sig=", "signature-in-url"},
	{"&sig=", "signature-in-url"},
	{"?signature=", "signature-in-url"},
	{"&signature=", "signature-in-url"},
	{"x-amz-signature=", "signature-in-url"},
	{"x-amz-security-token=", "signature-in-url"},
	{"x-goog-signature=", "signature-in-url"},
}

// lastPart is where the last part of an address's path begins.
func (s *scan) lastPart(at int) int {
	from := at
	end := min(len(s.text), at+maxValue)
	for ; at < end && (isName(s.text[at]) || s.text[at] == '/' || s.text[at] == '.'); at++ {
		if s.text[at] == '/' && at+1 < len(s.text) && isName(s.text[at+1]) {
			from = at + 1
		}
	}
	return from
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

// authorization finds what follows an Authorization header's name.
func (s *scan) authorization(at int) {
	at, _ = s.quoteEnd(at)
	if at = s.blanks(at); at >= len(s.text) || s.text[at] != ':' && s.text[at] != '=' {
		return
	}
	at, _ = s.quoteEnd(s.blanks(at + 1))
	for range 2 { // a scheme may stand before it
		end := s.tokenEnd(at, "._~+/=:@")
		if v := start(s.text[at:end]); end-at >= 8 && !wordy(v) && !stands(v) && !describes(v) && !elsewhere(v) && !isCode(v, false) {
			s.found("authorization", at, s.rest(at, end))
			return
		}
		if next := s.blanks(end); next > end {
			at = next
			continue
		}
		return
	}
}

// cookies finds those of sessions.
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
