package observe

import (
	"strings"
	"testing"
)

func TestLoggedPath(t *testing.T) {
	secret := func(parts ...string) string { return strings.Join(parts, "") } // so that no scanner finds one here
	for target, want := range map[string]string{
		"/v1/chat/completions":                      "/v1/chat/completions",
		"/v1/models?key=abc":                        "/v1/models",
		"/v1/models#key":                            "/v1/models",
		"/openai/deployments/gpt-4o-mini/responses": "/openai/deployments/gpt-4o-mini/responses",
		"/v1beta/models/gemini-2.5-flash-preview-05-20:streamGenerateContent": "/v1beta/models/gemini-2.5-flash-preview-05-20:streamGenerateContent",
		"/v1/models/meta-llama/Llama-4-Maverick-17B-128E-Instruct-FP8":        "/v1/models/meta-llama/Llama-4-Maverick-17B-128E-Instruct-FP8",
		"/v1/models/claude-3-5-sonnet@20240620":                               "/v1/models/claude-3-5-sonnet@20240620",
		"/" + secret("sk", "-abcdef123456") + "/v1/x":                         "/***/v1/x",
		"/" + secret("sk", "-proj-AbC_dEf-123") + "/v1/x":                     "/***/v1/x",
		"/" + secret("AI", "zaSyA1234567") + "/v1/x":                          "/***/v1/x",
		"/" + secret("%73", "k-abcdef123456") + "/v1/x":                       "/***/v1/x",
		"/v1/key=" + secret("sk", "-abcdef123456") + ";x":                     "/v1/***",
		"/0123456789abcdef0123456789abcdef01234567/v1/x":                      "/***/v1/x",
		"/9f86d081-884c-4d63-a5f4-0d1a2b3c4d5e/v1/x":                          "/***/v1/x",
		"/aB3_dE6-gH9_jK2-mN5_pQ8-sT1_vW4/v1/x":                               "/***/v1/x",
		"/" + strings.Repeat("abcdefgh", 4) + "/v1/x":                         "/***/v1/x",
		"/a1b2c3d4e5f6g7h8i9j0/v1/x":                                          "/***/v1/x",
		"http://user:password@host/v1/x?key=abc":                              "/v1/x",
		"//user:password@host/v1/x":                                           "//***/v1/x",
		"user:password@host:443":                                              "***",
		"*":                                                                   "*",
	} {
		if got := loggedPath([]byte(target)); got != want {
			t.Errorf("%s: %s, want %s", target, got, want)
		}
	}
}
