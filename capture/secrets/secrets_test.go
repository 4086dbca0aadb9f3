package secrets

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// random are characters as generators make them; a test's secrets are made of
// them when it runs, so that no scanner finds one here.
const random = "q7Zk2mX9vB4tLw8RnY3cH6jDfG5sPaU1eTz0oKiVxQyM"

func upper(n int) string { return strings.ToUpper(strings.Repeat(random, 3))[:n] }
func mixed(n int) string { return strings.Repeat(random, 5)[:n] }
func hexed(n int) string { return strings.Repeat("9f8b3c0d7e2a41564bd1", 10)[:n] }

// secretsInText are texts with {} for the secret that must go.
var secretsInText = []struct{ name, text, secret string }{
	{"OpenAI, project", "my key is {} please keep it", "sk-proj-" + mixed(48)},
	{"OpenAI, old", "OPENAI_API_KEY={}", "sk-" + mixed(20) + "T3BlbkFJ" + mixed(20)},
	{"Anthropic", "use {}", "sk-ant-api03-" + mixed(93) + "AA"},
	{"OpenRouter", "here: {}", "sk-or-v1-" + hexed(64)},
	{"LiteLLM master key", "the master key is {}", "sk-" + mixed(22)},
	{"AWS access key", "id {} in us-east-1", "AKIA" + strings.NewReplacer("0", "A", "1", "B", "8", "C", "9", "D").Replace(upper(16))},
	{"AWS secret", "aws_secret_access_key = {}", mixed(40)},
	{"GitHub", "git clone with {}", "ghp_" + mixed(36)},
	{"GitHub, fine-grained", "token {}", "github_pat_" + mixed(82)},
	{"GitLab", "{} is the token", "glpat-" + mixed(20)},
	{"Slack bot", "SLACK {}", "xoxb-123456789012-1234567890123-" + mixed(24)},
	{"Stripe", "charge with {}", "sk_live_" + mixed(24)},
	{"Google", "maps key {}", "AIza" + mixed(35)},
	{"npm", "//registry.npmjs.org/:_authToken={}", "npm_" + strings.ToLower(mixed(36))},
	{"Hugging Face", "login with {}", "hf_" + strings.NewReplacer("0", "a", "1", "b", "2", "c", "3", "d", "4", "e", "5", "f", "6", "g", "7", "h", "8", "i", "9", "j").Replace(mixed(34))},
	{"SendGrid", "mail: {}", "SG." + mixed(66)},
	{"JSON web token", "the cookie is {}", "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4ifQ." + mixed(43)},
	{"bearer", "curl -H 'Authorization: Bearer {}' https://x", mixed(40)},
	{"private key", "look:\n{}\nthat is all", "-----BEGIN RSA PRIVATE KEY-----\n" + mixed(64) + "\n" + mixed(64) + "\n-----END RSA PRIVATE KEY-----"},
	{"private key, cut off", "look:\n{}", "-----BEGIN OPENSSH PRIVATE KEY-----\n" + mixed(64)},
	{"password in a URL", "connect to postgres://bob:{}@db.example.com/x", "hunter2secret"},
	{"Redis URL without a user", "redis://:{}@cache:6379/0", "s3cr3tpw"},
	{".env password", "DB_PASSWORD={}", "Xk9mP2qL7vR4"},
	{".env, quoted and exported", "export SMTP_PASSWORD=\"{}\"", "correct-horse-battery"},
	{".env secret among others", "PORT=80\nAPP_SECRET={}\nDEBUG=1", mixed(24)},
	{"API key in YAML", "api_key: {}", hexed(32)},
	{"token in JSON", `{"access_token": "{}"}`, mixed(36)},
}

func TestSecretsGo(t *testing.T) {
	r, err := New()
	if err != nil {
		t.Fatal(err)
	}
	missed := 0
	for _, tc := range secretsInText {
		text := strings.ReplaceAll(tc.text, "{}", tc.secret)
		got, n := r.Redact(text)
		if strings.Contains(got, tc.secret) || !strings.Contains(got, "[redacted:") || n == 0 {
			missed++
			t.Errorf("%s: %q", tc.name, got)
		}
		before, after, _ := strings.Cut(tc.text, "{}")
		if !strings.HasPrefix(got, before) && !strings.HasPrefix(before, got[:min(len(got), 3)]) || !strings.HasSuffix(got, after) {
			t.Errorf("%s: more than the secret went: %q", tc.name, got)
		}
	}
	t.Logf("%d of %d secrets found", len(secretsInText)-missed, len(secretsInText))
}

// lookAlikes are not secrets, and must stay.
var lookAlikes = []string{
	"commit 3a31ddaab3a8e0fee85dbb10be71711d53e8f046 broke it",
	"the id is 98de077d-fcdc-4708-93dc-3f2cde045f38",
	"sha256:84e301d7b382b2f8a83af2856c1b65c0e3f1a2b4c5d6e7f8091a2b3c4d5e6f70",
	"integrity sha512-Xk9mP2qL7vR4abcdEFGHijklMNOPqrstUVWXyz0123456789abcdefgh==",
	"OPENAI_API_KEY=$OPENAI_API_KEY",
	"OPENAI_API_KEY=<your key here>",
	"export TOKEN=${GITHUB_TOKEN}",
	"API_KEY=your-api-key-goes-here",
	"API_KEY=xxxxxxxxxxxxxxxx",
	"set the password with os.environ[\"DB_PASSWORD\"]",
	"const key = process.env.API_KEY",
	"the keyboard shortcut is ctrl-shift-k",
	"sk-learn is a library, sk-... is how keys begin",
	"see https://example.com/a/b?c=d@e and ask bob@example.com",
	"http://localhost:8080/path",
	"ssh git@github.com:acme/widgets.git",
	"Bearer tokens are sent in the Authorization header",
	"-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A\n-----END PUBLIC KEY-----",
	"My cat is called Miso and she is afraid of thunder.",
	"what is the secret of a good sauce?",
	"a token is about four characters of English",
	"PASSWORD_MIN_LENGTH=12345678 is what I would call a setting, MAX_TOKENS=200000 too",
	"primary key: customer_identifier",
	"The key takeaway: measure before you optimise",
	"aws s3 ls s3://my-bucket/prefix",
	"ses_e048776adffeJLVywTK2jw7fdK",
	"func (s *Server) authenticate(token string) error",
	"docker run -e POSTGRES_PASSWORD=$PGPASS postgres",
	"the mass is 6.02214076e23",
	"v1.2.3-0.20190123101112-0123456789ab",
}

func TestLookAlikesStay(t *testing.T) {
	r, err := New()
	if err != nil {
		t.Fatal(err)
	}
	wrong := 0
	for _, text := range lookAlikes {
		if got, n := r.Redact(text); got != text || n != 0 {
			wrong++
			t.Errorf("%q became %q", text, got)
		}
	}
	t.Logf("%d of %d look-alikes stayed", len(lookAlikes)-wrong, len(lookAlikes))
}

// TestLongText: no more is looked at than may be kept, and what was not looked
// at is not there. Who cannot wait gets nothing.
func TestLongText(t *testing.T) {
	r, err := New()
	if err != nil {
		t.Fatal(err)
	}
	key := "ghp_" + mixed(36)
	text := key + strings.Repeat(" é", MaxText/3) + key
	got, n := r.Redact(text)
	if n != 1 || strings.Contains(got, key) || len(got) > MaxText+100 || !strings.HasSuffix(got, cutOff) || !utf8.ValidString(got) {
		t.Errorf("%d secrets, %d bytes that end with %q", n, len(got), got[len(got)-40:])
	}
	if got, _, ok := r.RedactBy("my key is "+key, time.Now().Add(-time.Second)); ok || got != "" {
		t.Errorf("too late: %q, %v", got, ok)
	}
	if got, n, ok := r.RedactBy("my key is "+key, time.Now().Add(time.Minute)); !ok || n != 1 || strings.Contains(got, key) {
		t.Errorf("in time: %q, %v", got, ok)
	}
}

func FuzzRedact(f *testing.F) {
	for _, tc := range secretsInText {
		f.Add(strings.ReplaceAll(tc.text, "{}", tc.secret))
	}
	for _, text := range lookAlikes {
		f.Add(text)
	}
	r, err := New()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, n := r.Redact(text)
		if n == 0 && got != text {
			t.Errorf("%q became %q", text, got)
		}
		if n != strings.Count(got, "[redacted:")-strings.Count(text, "[redacted:") && !strings.Contains(text, "[redacted:") {
			t.Errorf("%d secrets in %q", n, got)
		}
	})
}

// BenchmarkRedact: what a turn costs, and a question before it is asked of the
// memory. Keywords is every word of which any rule takes notice, one after the
// other.
func BenchmarkRedact(b *testing.B) {
	r, err := New()
	if err != nil {
		b.Fatal(err)
	}
	code, err := os.ReadFile("../pipeline.go")
	if err != nil {
		b.Fatal(err)
	}
	prose := strings.Repeat("I think that the token budget is key to a good answer, and the password is not. ", 100)
	var env strings.Builder
	for i := 0; env.Len() < 8000; i++ {
		fmt.Fprintf(&env, "SERVICE_%d_PASSWORD=hunter%d22x\nSERVICE_%d_API_KEY=%s\nSERVICE_%d_PORT=80\n", i, i, i, mixed(32), i)
	}
	var keywords strings.Builder
	for _, rule := range r.rules {
		for _, k := range rule.Keywords {
			keywords.WriteString(k + "_x=" + mixed(24) + " ")
		}
	}
	for _, text := range []struct{ name, text string }{
		{"prose 8KB", prose},
		{"code 8KB", string(code[:8000])},
		{"env 8KB", env.String()},
		{"question 2KB", prose[:2048]},
		{"keywords 2KB", keywords.String()[:2048]},
		{"keywords 8KB", keywords.String()[:8000]},
		{"prose 1MB", strings.Repeat(prose, 130)},
		{"hostile names 1MB", strings.Repeat("password=", 116000)},
		{"hostile tokens 1MB", strings.Repeat("whsec_/", 150000)},
		{"hostile headers 1MB", strings.Repeat("authorization:", 75000)},
		{"hostile paths 1MB", strings.Repeat("discord.com/api/webhooks/", 42000)},
		{"hostile keywords 1MB", strings.Repeat("eyj.", 260000)},
		{"hostile addresses 1MB", strings.Repeat("a://b:", 175000)},
	} {
		b.Run(text.name, func(b *testing.B) {
			b.SetBytes(int64(len(text.text)))
			b.ReportAllocs()
			for b.Loop() {
				r.Redact(text.text)
			}
		})
	}
}
