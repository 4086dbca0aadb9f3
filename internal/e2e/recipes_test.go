//go:build e2e

package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// recipe is a program made from a page: one of its code blocks, followed by rest, which
// sends the text of the variable SAID and prints the answer.
type recipe struct {
	name, page string
	block      int
	command    []string // reads the program from standard input
	needs      string   // installed directory, below .cache
	rest       string
}

var (
	inPython = []string{"python3", "-"}
	inNode   = []string{"node", "--input-type=module"}
	inShell  = []string{"sh", "-s"}
)

// pythonSays and nodeSays return shell commands that run a client's program after those of
// a page.
func pythonSays(program string) string {
	return "\npython3 - <<'END'\nimport os\n" + program + "\nEND\n"
}

func nodeSays(program string) string {
	return "\nnode --input-type=module <<'END'\n" + program + "\nEND\n"
}

const (
	openAIInPython = `import openai
print(openai.OpenAI().chat.completions.create(model="m", messages=[{"role": "user", "content": os.environ["SAID"]}]).choices[0].message.content)`
	anthropicInPython = `import anthropic
print(anthropic.Anthropic().messages.create(model="m", max_tokens=100, messages=[{"role": "user", "content": os.environ["SAID"]}]).content[0].text)`
	googleInPython = `
print(client.models.generate_content(model="m", contents=os.environ["SAID"]).text)`

	openAIInNode = `import OpenAI from 'openai';
const r = await new OpenAI().chat.completions.create({ model: 'm', messages: [{ role: 'user', content: process.env.SAID }] });
console.log(r.choices[0].message.content);`
	anthropicInNode = `import Anthropic from '@anthropic-ai/sdk';
const r = await new Anthropic().messages.create({ model: 'm', max_tokens: 100, messages: [{ role: 'user', content: process.env.SAID }] });
console.log(r.content[0].text);`
	googleInNode = `
console.log((await ai.models.generateContent({ model: 'm', contents: process.env.SAID })).text);`
)

// vercel returns a program that sends SAID with one of the page's providers.
func vercel(provider string) string {
	return "\nimport { generateText } from 'ai';\nconsole.log((await generateText({ model: " + provider + "('m'), prompt: process.env.SAID })).text);\n"
}

var recipes = []recipe{
	{"OpenAI, Python", "openai-sdks", 0, inShell, "python/openai", pythonSays(openAIInPython)},
	{"OpenAI, JavaScript", "openai-sdks", 0, inShell, "node/node_modules/openai", nodeSays(openAIInNode)},
	{"Anthropic, Python", "anthropic-sdks", 0, inShell, "python/anthropic", pythonSays(anthropicInPython)},
	{"Anthropic, JavaScript", "anthropic-sdks", 0, inShell, "node/node_modules/@anthropic-ai/sdk", nodeSays(anthropicInNode)},
	{"Google, JavaScript", "google-genai-sdks", 0, inNode, "node/node_modules/@google/genai", googleInNode},
	{"Google, Python", "google-genai-sdks", 1, inPython, "python/google/genai", googleInPython},
	{"Vercel, Chat Completions", "vercel-ai-sdk", 0, inNode, "node/node_modules/ai", vercel("openai")},
	{"Vercel, Responses", "vercel-ai-sdk", 0, inNode, "node/node_modules/ai", vercel("responses")},
	{"Vercel, Messages", "vercel-ai-sdk", 0, inNode, "node/node_modules/ai", vercel("anthropic")},
	{"Vercel, Gemini", "vercel-ai-sdk", 0, inNode, "node/node_modules/ai", vercel("google")},
	{"aider", "aider", 0, inShell, "agents/bin/aider", ` --message "$SAID" --no-git --yes-always --no-pretty --no-check-update --analytics-disable --no-show-release-notes --no-show-model-warnings`},
	{"LangChain", "langchain", 0, inPython, "langchain/langchain_openai", "\nprint(llm.invoke(os.environ['SAID']).content)"},
}

// before holds the lines that a page leaves to its readers: imports and keys.
var before = map[string]string{
	"Google, JavaScript": "import { GoogleGenAI } from '@google/genai';\nconst apiKey = process.env.OPENAI_API_KEY;\n",
	"Google, Python":     "import os\nfrom google import genai\nfrom google.genai import types\nkey = os.environ['OPENAI_API_KEY']\n",
	"LangChain":          "import os\n",
	"aider":              "cd \"$HOME\"\n",
}

// says runs the recipe with a person's words and returns its output.
func (r *recipe) says(t *testing.T, url, words string) string {
	t.Helper()
	of, _, _ := strings.Cut(r.needs, "/")
	dir, err := filepath.Abs(filepath.Join(".cache", of))
	must(t, err)
	text := recipeText(t, r.page, r.block, url)
	if !strings.Contains(text, url) {
		t.Fatalf("%s.md does not name the proxy", r.page)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, r.command[0], r.command[1:]...)
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(before[r.name]+strings.TrimRight(text, "\n")+r.rest)
	cmd.Env = append(os.Environ(), "PYTHONPATH="+dir, "PYTHONDONTWRITEBYTECODE=1", "PATH="+filepath.Join(dir, "bin")+":"+os.Getenv("PATH"), "HOME="+t.TempDir(),
		"SAID="+words, "HTTPS_PROXY=http://127.0.0.1:9", "LITELLM_LOCAL_MODEL_COST_MAP=True",
		"OPENAI_API_KEY=sk-test", "ANTHROPIC_API_KEY=sk-test", "GOOGLE_GENERATIVE_AI_API_KEY=sk-test")
	var said, failed strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &failed
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%s", r.name, err, failed.String())
	}
	return said.String()
}

// TestRecipes runs the code of each page: a fact of one program reaches the next.
func TestRecipes(t *testing.T) {
	t.Parallel()
	for _, r := range recipes {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			if _, err := os.Stat(filepath.Join(".cache", r.needs)); err != nil {
				t.Skipf("SKIPPED LOUDLY: %s is not installed; run internal/e2e/install.sh where its registry is reached", r.needs)
			}
			w := serve(t)
			r.says(t, w.url, "My cat is called Miso.")
			w.until(t, "the turn", func(q queue) bool { return q.Delivered == 1 })
			w.model.Forget()
			if got := r.says(t, w.url, "What is my cat called?"); strings.TrimSpace(got) == "" {
				t.Error("the next program printed nothing, want the answer")
			}
			if block := lastBlock(t, w.model); !strings.Contains(block, "Miso") {
				t.Errorf("the next program's block: got %q, want the fact", block)
			}
		})
	}
}

// TestRecipeOfOpenWebUI runs the proxy with the settings of the page and sends the headers
// of Open WebUI: each user has a memory, and a temporary chat is not stored.
func TestRecipeOfOpenWebUI(t *testing.T) {
	t.Parallel()
	const key = "sk-open-webui"
	w := serve(t, settingsIn(t, strings.ReplaceAll(codeBlocks(t, "../../deploy/recipes/open-webui.md")[0], "sk-…", key))...)
	say := func(user, chat, text string) string {
		return send(t, w.url, key, map[string]any{"model": "m", "messages": []any{map[string]any{"role": "user", "content": text}}},
			"X-OpenWebUI-User-Id", user, "X-OpenWebUI-Chat-Id", chat)
	}
	say("ann", "1", "My cat is called Miso.")
	w.until(t, "Ann's turn", func(q queue) bool { return q.Delivered == 1 })
	say("ann", "local:2", "My dog is called Rex.")
	for _, tc := range []struct {
		user, text, word string
		knows            bool
	}{
		{"ann", "What is my cat called?", "Miso", true},
		{"ann", "What is my dog called?", "Rex", false},
		{"bob", "What is my cat called?", "Miso", false},
	} {
		if got := say(tc.user, tc.user+tc.word, tc.text); strings.Contains(got, tc.word) != tc.knows {
			t.Errorf("%s asks %q: got %q, want %s in it: %v", tc.user, tc.text, got, tc.word, tc.knows)
		}
	}
}
