package dialect_test

import "testing"

// TestClientTexts checks texts of clients beside a person's words, without an element:
// the time, labels of pictures, reports of tools, and quotation marks.
func TestClientTexts(t *testing.T) {
	const words = "My marmot lives in burrow Zeta."
	clocks := []string{
		"[Saturday, November 28, 2026, 2:01 PM]", "Current time: 2026-11-28 14:01", "The current date and time is Sat Nov 28 2026 14:01:22 GMT+01:00.",
		"Current date: 2026-11-28\nCurrent time: 14:01\nTime zone: Europe/Berlin", "**Local time:** 2:01 pm", "Today's date is Nov 28th, 2026.",
		"It is Saturday, 28 November 2026, 14:01 CET.", "Timestamp now: 2026-11-28T14:01:33.120Z",
	}
	for _, clock := range clocks {
		for _, text := range []string{clock + "\n\n" + words, words + "\n\n" + clock, words + "\r\n\r\n" + clock + "\n"} {
			if c := parsed(t, message(t, text)); string(c.Text(0)) != words {
				t.Errorf("the words in %q = %q, want %q", text, c.Text(0), words)
			}
		}
	}
	for _, stamp := range []string{"[Samstag, 28. November 2026, 14:01]", "[2026-11-28 14:01:11 UTC]", "[Sat Nov 28 2026 2:01 PM]"} {
		if c := parsed(t, message(t, stamp+" "+words)); string(c.Text(0)) != words {
			t.Errorf("the words behind %q = %q, want %q", stamp, c.Text(0), words)
		}
	}
	for _, text := range []string{
		"Book a table.\n\nDate: 2026-12-01", "Time: 14:00\n\nbook it", "Remember:\n\nDentist: 30 November 2026, 9:00", "The ferry leaves on\n\n28 November 2026, 14:00",
		"28 November 2026, 14:00", "today, 14:00", "Release date: 2026-11-28\n\nPlease plan it.", "The launch is on Saturday, November 28, 2026 at 2:01 PM.\n\nTell Ann.",
		"It is raining.\n\nWhat now?", "[Ann: 14:01] moved", `Say "yes"`, `"a" and "b"`, "[1]: see below",
	} {
		if c := parsed(t, message(t, text)); string(c.Text(0)) != text {
			t.Errorf("the words in %q = %q, want all", text, c.Text(0))
		}
	}
	if c := parsed(t, message(t, words), message(t, "Current time: Saturday, November 28, 2026 at 2:01 PM.")); c.Last != 0 {
		t.Errorf("Last = %d behind a message with the time, want 0", c.Last)
	}
}

// TestPictures checks that only a person's words remain of a message with a picture or a file.
func TestPictures(t *testing.T) {
	text := func(s string) any { return map[string]any{"type": "text", "text": s} }
	picture := map[string]any{"type": "image_url", "image_url": map[string]any{"url": "data:image/png;base64,iVBORw0KGgo="}}
	read := text(`Called the Read tool with the following input: {"filePath":"/home/dev/pic.png"}`)
	for _, tc := range []struct {
		name  string
		parts []any
		want  string
	}{
		{"a label behind", []any{text("What is it?"), picture, text("[Image: source: /tmp/x/images/1.png]")}, "What is it?"},
		{"two labels behind", []any{text("What is it?"), picture, text("[Image: source: /tmp/x/1.png]"), picture, text("[Image: source: /tmp/x/2.png]")}, "What is it?"},
		{"a report before", []any{read, text("Image read successfully"), picture, text("What is it?")}, "What is it?"},
		{"a refused picture", []any{read, text("Image read successfully"), text("ERROR: cannot read it."), text("What is it?")}, "What is it?"},
		{"a report behind", []any{text("What is it?"), read, text("Image read successfully"), picture}, "What is it?"},
		{"two files behind", []any{text("What are they?"), read, text("<path>/a</path>\n<type>file</type>\nx"), read, text("Remember that we use mirrors.")}, "What are they?"},
		{"words around", []any{text("This is Rex:"), picture, text("Which breed is it?")}, "This is Rex:\nWhich breed is it?"},
		{"a word in brackets alone", []any{picture, text("[Rex: a dog]")}, "[Rex: a dog]"},
	} {
		c := parsed(t, map[string]any{"role": "user", "content": tc.parts})
		if got := string(c.Text(0)); got != tc.want {
			t.Errorf("%s: the words are %q, want %q", tc.name, got, tc.want)
		}
	}
}

// TestQuotationMarks checks that the marks which opencode puts around words are the client's.
func TestQuotationMarks(t *testing.T) {
	const quoted = `"Remember that we always use tabs."`
	for prompt, want := range map[string]string{"You are opencode, an agent.": "Remember that we always use tabs.", "You are Kilo.": "Remember that we always use tabs.", "You are helpful.": quoted} {
		c := parsed(t, map[string]any{"role": "system", "content": prompt}, message(t, quoted))
		if got := string(c.Text(1)); got != want {
			t.Errorf("%s: the words are %q, want %q", prompt, got, want)
		}
	}
}
