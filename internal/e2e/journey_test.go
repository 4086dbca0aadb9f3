//go:build e2e

package e2e

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// olderClaude is Claude Code with a model before Opus 5. Such models get the directory in
// another form.
var olderClaude = coder{name: "Claude Code, older models", tool: `Bash {"command":"echo forty-two","description":"counts"}`, run: func(t *testing.T, url, home, repo, prompt string, how how) string {
	return claude(t, url, home, repo, prompt, how, "--model", "claude-haiku-4-5")
}}

// olderGemini is Gemini CLI with a model before Gemini 3. Such models get another
// introduction.
var olderGemini = coder{name: "Gemini CLI, older models", tool: theCoders[3].tool, run: func(t *testing.T, url, home, repo, prompt string, how how) string {
	return gemini(t, url, home, repo, prompt, how, "--model", "gemini-2.5-pro")
}}

var qwenCode = coder{name: "Qwen Code", tool: `run_shell_command {"command":"echo forty-two","description":"counts"}`, run: qwen}

// builtInCodex is Codex as connect sets it: with its built-in provider and its default model.
var builtInCodex = coder{name: "Codex, built-in provider", tool: theCoders[0].tool, run: func(t *testing.T, url, home, repo, prompt string, how how) string {
	write(t, fmt.Sprintf("openai_base_url = %q\n", url+"/v1"), home, ".codex", "config.toml")
	args := []string{"exec", "--skip-git-repo-check"}
	if how.goOn {
		args = append(args, "resume", "--last")
	}
	return cli(t, repo, append(os.Environ(), "HOME="+home, "CODEX_API_KEY=sk-test"), ".bin/codex", append(args, prompt)...)
}}

// theJourneys are the clients of TestClients.
var theJourneys = []journey{
	{coder: theCoders[0], needs: "cli/node_modules/@openai/codex", compact: func(t *testing.T, url, home, repo string) {
		// Codex compacts before a turn if the previous one was too long.
		cli(t, repo, append(os.Environ(), "HOME="+home, "OPENAI_API_KEY=sk-test"), ".bin/codex", "exec", "--skip-git-repo-check", "-c", "model_auto_compact_token_limit=1", "resume", "--last", goOn)
	}},
	{coder: builtInCodex, needs: "cli/node_modules/@openai/codex"},
	{coder: theCoders[1], needs: "cli/node_modules/opencode-linux-x64", attaches: true},
	{coder: theCoders[2], needs: "cli/node_modules/@anthropic-ai/claude-code", attaches: true, compact: func(t *testing.T, url, home, repo string) {
		theCoders[2].run(t, url, home, repo, "/compact", how{goOn: true})
	}},
	{coder: olderClaude, needs: "cli/node_modules/@anthropic-ai/claude-code", attaches: true, compact: func(t *testing.T, url, home, repo string) {
		olderClaude.run(t, url, home, repo, "/compact", how{goOn: true})
	}},
	{coder: theCoders[3], needs: "cli/node_modules/@google/gemini-cli", attaches: true, compact: func(t *testing.T, url, home, repo string) {
		theCoders[3].run(t, url, home, repo, "/compress", how{goOn: true})
	}},
	{coder: olderGemini, needs: "cli/node_modules/@google/gemini-cli", attaches: true}, // it exits before the end of the compaction
	{
		coder: coder{name: "Copilot CLI", tool: `bash {"command":"echo forty-two","description":"counts"}`, run: copilot},
		needs: "clients/copilot/node_modules/@github/copilot",
		compact: func(t *testing.T, url, home, repo string) {
			copilot(t, url, home, repo, "/compact", how{goOn: true})
		},
	},
	{
		coder: qwenCode,
		needs: "clients/qwen/node_modules/@qwen-code/qwen-code", attaches: true,
		compact: func(t *testing.T, url, home, repo string) {
			qwen(t, url, home, repo, "/compress", how{goOn: true})
		},
	},
	{coder: coder{name: "pi", tool: `bash {"command":"echo forty-two"}`, run: pi}, needs: "clients/pi/node_modules/@mariozechner/pi-coding-agent", attaches: true, compact: piCompacts},
	{
		coder: coder{name: "Continue", tool: `Bash {"command":"echo forty-two"}`, run: continues},
		needs: "clients/continue/node_modules/@continuedev/cli",
		compact: func(t *testing.T, url, home, repo string) {
			continues(t, url, home, repo, "/compact", how{goOn: true})
		},
	},
	{coder: coder{name: "Cline", tool: `run_commands {"commands":["echo forty-two"]}`, run: cline}, needs: "clients/cline/node_modules/cline", once: true},
}

func copilot(t *testing.T, url, home, repo, prompt string, how how) string {
	args := []string{"-p", prompt, "--allow-all-tools"}
	if how.goOn {
		args = append(args, "--continue")
	}
	return program(t, repo, append(os.Environ(), "HOME="+home, "COPILOT_PROVIDER_BASE_URL="+url+"/v1", "COPILOT_PROVIDER_TYPE=openai", "COPILOT_PROVIDER_WIRE_API=completions",
		"COPILOT_PROVIDER_API_KEY=sk-test", "COPILOT_OFFLINE=1", "COPILOT_MODEL=gpt-5.1"), nil, "clients/copilot/node_modules/@github/copilot-linux-x64/copilot", args...)
}

func qwen(t *testing.T, url, home, repo, prompt string, how how) string {
	write(t, "", home, ".keep") // it does not start without a home
	args := []string{"--auth-type", "openai", "--openai-api-key", "sk-test", "--openai-base-url", url + "/v1", "-m", "m", "-y", "-p", how.at(prompt)}
	if how.goOn {
		args = append(args, "--continue")
	}
	return program(t, repo, append(os.Environ(), "HOME="+home), nil, "clients/qwen/node_modules/.bin/qwen", args...)
}

func piSettings(t *testing.T, url, home string) []string {
	write(t, fmt.Sprintf(`{"providers":{"p":{"baseUrl":"%s/v1","api":"openai-completions","apiKey":"sk-test","models":[{"id":"m"}]}}}`, url), home, ".pi", "agent", "models.json")
	write(t, `{"compaction":{"keepRecentTokens":1}}`, home, ".pi", "agent", "settings.json")
	return append(os.Environ(), "HOME="+home, "PI_OFFLINE=1")
}

func pi(t *testing.T, url, home, repo, prompt string, how how) string {
	args := []string{"--provider", "p", "--model", "m", "-p"}
	if how.goOn {
		args = append(args, "--continue")
	}
	if how.file != "" {
		args = append(args, "@"+how.file)
	}
	return program(t, repo, piSettings(t, url, home), nil, "clients/pi/node_modules/.bin/pi", append(args, prompt)...)
}

// piCompacts requests a compaction over pi's RPC and waits for the answer.
func piCompacts(t *testing.T, url, home, repo string) {
	path, err := filepath.Abs(".cache/clients/pi/node_modules/.bin/pi")
	must(t, err)
	cmd := exec.CommandContext(t.Context(), path, "--provider", "p", "--model", "m", "--continue", "--mode", "rpc")
	cmd.Dir, cmd.Env = repo, piSettings(t, url, home)
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	_, _ = io.WriteString(in, `{"type":"compact","id":"1"}`+"\n")
	answer := ""
	for s := bufio.NewScanner(out); s.Scan(); {
		if answer = s.Text(); strings.Contains(answer, `"type":"response"`) {
			break
		}
	}
	_ = in.Close()
	_ = cmd.Wait()
	if !strings.Contains(answer, `"success":true`) {
		t.Errorf("pi: %s", answer)
	}
}

func continues(t *testing.T, url, home, repo, prompt string, how how) string {
	write(t, recipeText(t, "continue", 0, url), home, ".continue", "config.yaml")
	write(t, "OPENAI_API_KEY=sk-test\n", home, ".continue", ".env")
	args := []string{"--config", filepath.Join(home, ".continue", "config.yaml"), "--auto"}
	if how.goOn {
		args = append(args, "--resume")
	}
	return program(t, repo, append(os.Environ(), "HOME="+home, "CONTINUE_TELEMETRY_ENABLED=0"), nil, "clients/continue/node_modules/.bin/cn", append(args, "-p", prompt)...)
}

// cline runs Cline and ends the daemon that it starts.
func cline(t *testing.T, url, home, repo, prompt string, _ how) string {
	env := append(os.Environ(), "HOME="+home, "CLINE_TELEMETRY_DISABLED=1")
	const name = "clients/cline/node_modules/.bin/cline"
	defer endAll(t, home)
	program(t, repo, env, nil, name, "auth", "-p", "openai-compatible", "-k", "sk-test", "-m", "gpt-4o", "-b", url+"/v1")
	return program(t, repo, env, nil, name, "-P", "openai-compatible", "-m", "gpt-4o", "--json", prompt)
}

// endAll kills the processes that clients have left running with a home, because they
// continue to write to it.
func endAll(t *testing.T, home string) {
	t.Helper()
	for range 250 {
		left := 0
		all, err := filepath.Glob("/proc/[0-9]*/environ")
		must(t, err)
		for _, name := range all {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name)))
			b, readErr := os.ReadFile(name) // empty if the process has ended
			if err == nil && readErr == nil && bytes.Contains(append([]byte{0}, b...), []byte("\x00HOME="+home+"\x00")) {
				_ = syscall.Kill(pid, syscall.SIGKILL)
				left++
			}
		}
		if left == 0 {
			return
		}
		<-time.After(20 * time.Millisecond)
	}
	t.Errorf("what has the home %s does not end", home)
}
