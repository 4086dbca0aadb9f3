package proxytest

import (
	"regexp"
	"strings"
)

// Input is the input of a model.
type Input struct {
	Messages []Message
	Tools    bool
}

// Message is one message, its text parts joined.
type Message struct{ Role, Text string }

// Reply is a model's text or tool call.
type Reply struct {
	Text            string
	Tool, Arguments string
	Thinks          bool // precede it by a signed thought, if the API supports that
	Cached          int  // tokens that OpenAI's APIs report as read from the prompt cache
}

var (
	toolWish = regexp.MustCompile(`\[\[tool (\w+) (\{.*?\})\]\]`)
	sentence = regexp.MustCompile(`[^.!?\n]+[.!?]?`)
	word     = regexp.MustCompile(`[\pL\pN]+`)
)

// Recollect is the built-in model. It repeats the input sentence that shares the most words
// with a question, and acknowledges anything else. If a user's text contains
// [[tool NAME {json}]], it calls that tool first.
func Recollect(c Input) Reply {
	last := -1
	for i, m := range c.Messages {
		if m.Role == "user" {
			last = i
		}
	}
	if last < 0 {
		return Reply{Text: "Hello."}
	}
	own := c.Messages[last].Text
	if i := strings.LastIndex(own, "</graphiti_memory>"); i >= 0 {
		own = own[i+len("</graphiti_memory>"):]
	}
	if w := toolWish.FindStringSubmatch(own); w != nil && c.Tools && last == len(c.Messages)-1 {
		return Reply{Tool: w[1], Arguments: w[2]}
	}
	if !strings.Contains(own, "?") {
		return Reply{Text: "Understood, I will keep that in mind."}
	}
	question := wordsIn(own)
	best, most := "", 0
	for _, m := range c.Messages[:last+1] {
		if m.Role == "assistant" {
			continue
		}
		for _, s := range sentence.FindAllString(m.Text, -1) {
			s = strings.TrimSpace(s)
			if strings.HasSuffix(s, "?") {
				continue
			}
			shared := 0
			for w := range wordsIn(s) {
				if question[w] {
					shared++
				}
			}
			if shared > most {
				best, most = s, shared
			}
		}
	}
	if most < 2 {
		return Reply{Text: "I do not know."}
	}
	if i := strings.LastIndex(best, ": "); i >= 0 { // speaker and date
		best = best[i+2:]
	}
	return Reply{Text: "You told me: " + best}
}

func wordsIn(s string) map[string]bool {
	out := make(map[string]bool)
	for _, w := range word.FindAllString(strings.ToLower(s), -1) {
		out[w] = true
	}
	return out
}
