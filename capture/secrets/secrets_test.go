package secrets

import (
	"strings"
	"testing"
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

// TestManySecretsInOneLine: of a line no more is looked at around each of them
// than tells whether it is one; else this would take minutes.
func TestManySecretsInOneLine(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{"one\ntwo [] three\nfour", "two [] three"},
		{"[]", "[]"},
		{"\n[\n]\n", "[\n]"},
		{strings.Repeat("a", 2*maxAround) + "[]" + strings.Repeat("b", 2*maxAround), strings.Repeat("a", maxAround) + "[]" + strings.Repeat("b", maxAround)},
	} {
		if got := lineAround(tc.text, strings.IndexByte(tc.text, '['), strings.IndexByte(tc.text, ']')+1); got != tc.want {
			t.Errorf("%q, want %q", got, tc.want)
		}
	}
	line := strings.Repeat("a://b:hunter2@c ", 1<<19)
	for at := range 1 << 17 {
		if got := lineAround(line, len(line)/2+at, len(line)/2+at+1); len(got) != 2*maxAround+1 {
			t.Fatalf("%d bytes", len(got))
		}
	}
	r, err := New()
	if err != nil {
		t.Fatal(err)
	}
	if got, n := r.Redact(line[:1<<14]); n != 1<<10 || strings.Contains(got, "hunter2") {
		t.Errorf("%d secrets", n)
	}
}

// TestRulesCompile: every rule works, and none finds itself in nothing.
func TestRulesCompile(t *testing.T) {
	r, err := New()
	if err != nil {
		t.Fatal(err)
	}
	if len(r.rules) < 200 {
		t.Errorf("%d rules", len(r.rules))
	}
	for _, one := range r.rules {
		if got := r.find(nil, one, "hello world"); len(got) != 0 {
			t.Errorf("%s finds %v", one.ID, got)
		}
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

func BenchmarkRedact(b *testing.B) {
	r, err := New()
	if err != nil {
		b.Fatal(err)
	}
	text := strings.Repeat("I think that the token budget is key to a good answer, and the password is not. ", 100)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		r.Redact(text)
	}
}
