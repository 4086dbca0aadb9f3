package work

import (
	"slices"
	"strings"
	"testing"
)

// faults are outputs of a program in two directories, with different lines and values, and
// the key of both.
var faults = map[string]struct{ one, two, key string }{
	"pytest": {
		"F [100%]\n=== FAILURES ===\n___ test_total ___\n    def test_total():\n>       assert total([1,\"a\"]) == 3\nE       TypeError: unsupported operand type(s) for +: 'int' and 'str'\n\n/home/a/p/cart.py:4: TypeError\n=== short test summary info ===\nFAILED tests/test_cart.py::test_total - TypeError: unsupported operand type(s) for +: 'int' and 'str'\n1 failed in 0.02s",
		"FAILED test_cart.py::test_total - TypeError: unsupported operand type(s) for +: 'int' and 'str'\n1 failed, 3 passed in 1.34s",
		"test_cart.py::test_total | TypeError: unsupported operand type(s) for +: 'int' and 'str'",
	},
	"Python, file": {
		"Traceback (most recent call last):\n  File \"/home/a/p/x.py\", line 3, in <module>\n    open(\"/home/a/p/settings_a.json\")\nFileNotFoundError: [Errno 2] No such file or directory: '/home/a/p/settings_a.json'",
		"Traceback (most recent call last):\n  File \"/srv/b/x.py\", line 9, in <module>\nFileNotFoundError: [Errno 2] No such file or directory: '/srv/b/settings_a.json'",
		"FileNotFoundError: [Errno #] No such file or directory: 'settings_a.json'",
	},
	"Python, chained": {
		"Traceback (most recent call last):\nKeyError: 'a'\n\nDuring handling of the above exception, another exception occurred:\n\nTraceback (most recent call last):\nOSError: [Errno 98] Address already in use",
		"Traceback (most recent call last):\nOSError: [Errno 48] Address already in use\n",
		"OSError: [Errno #] Address already in use",
	},
	"go test": {
		"--- FAIL: TestPrice (0.00s)\n    price_test.go:9: got 3, want 4\nFAIL\nFAIL\tcart\t0.004s\nFAIL", "--- FAIL: TestPrice (1.20s)\n    price_test.go:19: got 5, want 4\nFAIL\nexit status 1", "--- FAIL: TestPrice",
	},
	"go panic": {
		"panic: runtime error: index out of range [5] with length 3\n\ngoroutine 1 [running]:\nmain.main()\n\t/home/a/p/main.go:8 +0x1d\nexit status 2",
		"panic: runtime error: index out of range [7] with length 2\n\ngoroutine 1 [running]:",
		"panic: runtime error: index out of range [#] with length #",
	},
	"go build":  {"# cart\n./a.go:5:2: undefined: totl", "# cart\nsrc/a.go:15:9: undefined: totl", "a.go: undefined: totl"},
	"rustc":     {"error[E0308]: mismatched types\n --> src/main.rs:4:18\n", "   Compiling x v0.1.0 (/home/b/x)\nerror[E0308]: mismatched types\n --> src/main.rs:40:1\n", "main.rs: error[E0308]: mismatched types"},
	"rust test": {"thread 'tests::adds' panicked at src/lib.rs:9:9:\nassertion `left == right` failed\n  left: 3", "thread 'tests::adds' (88) panicked at src/lib.rs:19:9:\nassertion `left == right` failed\n  left: 5", "assertion `left == right` failed"},
	"gcc":       {"a.c: In function 'main':\na.c:3:5: error: implicit declaration of function 'prnt'", "src/a.c:30:5: error: implicit declaration of function 'prnt'", "implicit declaration of function 'prnt'"},
	"javac":     {"Main.java:3: error: incompatible types: String cannot be converted to int\n", "/b/src/Main.java:33: error: incompatible types: String cannot be converted to int\n", "Main.java: incompatible types: String cannot be converted to int"},
	"Java":      {"Exception in thread \"main\" java.lang.RuntimeException: x\n\tat Main.main(Main.java:3)\nCaused by: java.lang.NullPointerException: Cannot invoke \"String.length()\" because \"s\" is null", "Caused by: java.lang.NullPointerException: Cannot invoke \"String.length()\" because \"s\" is null\n\t... 1 more", "Caused by: java.lang.NullPointerException: Cannot invoke \"String.length()\" because \"s\" is null"},
	"shell":     {"/bin/bash: line 1: kubectl-frobnicate: command not found", "sh: 12: kubectl-frobnicate: command not found", "kubectl-frobnicate: command not found"},
	"git":       {"error: src refspec main does not match any\nerror: failed to push some refs to '/tmp/x'", "error: src refspec main does not match any", "src refspec main does not match any"},
	"node":      {"node:internal/modules/cjs/loader:1143\n  throw err;\n  ^\n\nError: Cannot find module './carrt_x'\nRequire stack:\n- /home/a/p/index.js", "Error: Cannot find module './carrt_x'", "Cannot find module './carrt_x'"},
	"node port": {"Error: listen EADDRINUSE: address already in use :::3000", "Error: listen EADDRINUSE: address already in use :::8080", "listen EADDRINUSE: address already in use :::#"},
	"tsc":       {"src/a.ts(3,19): error TS2307: Cannot find module './cart' or its corresponding type declarations.", "a.ts:13:9 - error TS2307: Cannot find module './cart' or its corresponding type declarations.", "error TS2307: Cannot find module './cart' or its corresponding type declarations."},
	"jest":      {"  ● adds numbers\n\n    expect(received).toBe(expected) // Object.is equality\n\n    Expected: 4", "FAIL src/a.test.js\n  ● adds numbers\n\n    expect(received).toBe(expected) // Object.is equality\n", "● adds numbers | expect(received).toBe(expected) // Object.is equality"},
	"cat":       {"cat: /home/a/secret_a: No such file or directory", "cat: /tmp/b/secret_a: No such file or directory", "cat: secret_a: No such file or directory"},
	"no form":   {"compiling\nmake: *** [Makefile:3: all] Fehler 2", "make: *** [Makefile:3: all] Fehler 7", "make: *** [Makefile:#: all] Fehler #"},
}

func TestFaultIn_EqualInAnotherDirectory(t *testing.T) {
	keys := make(map[string]string)
	for name, tc := range faults {
		for _, text := range []string{tc.one, tc.two, "\x1b[31m" + tc.two + "\x1b[0m"} {
			if got := FaultIn(colors.ReplaceAllString(text, ""), true); got.Key != tc.key {
				t.Errorf("%s: key %q, want %q", name, got.Key, tc.key)
			}
		}
		if other, found := keys[tc.key]; found {
			t.Errorf("%s and %s have the same key", name, other)
		}
		keys[tc.key] = name
	}
}

func TestFaultIn_TellingWord(t *testing.T) {
	for name, tc := range faults {
		if name == "rustc" || name == "rust test" || name == "go panic" || name == "Python, chained" || name == "no form" { // a kind without a name
			continue
		}
		words := strings.NewReplacer("test_total", "test_sum", "settings_a", "settings_b", "TestPrice", "TestCost", "totl", "totle", "'prnt'", "'prntf'", "String", "Strong",
			"frobnicate", "tinker", "refspec main", "refspec next", "carrt_x", "carrt_y", "EADDRINUSE", "EACCES", "'./cart'", "'./card'", "adds numbers", "adds words", "secret_a", "secret_b")
		if got := FaultIn(words.Replace(tc.one), true); got.Key == tc.key {
			t.Errorf("%s: key %q of another error too", name, got.Key)
		}
	}
}

// TestEnds_Cut checks that each form of an error finds its cure if a program or a terminal
// cuts the error at any width, in the output of the cured command or in a person's message.
func TestEnds_Cut(t *testing.T) {
	const (
		named  = "FAILED tests/test_cart.py::test_total - "
		reason = "TypeError: unsupported operand type(s) for +: 'int' and 'str'"
		frame  = "E       " + reason
	)
	other := strings.Replace(reason, "operand", "operator", 1)
	differs := len("TypeError: unsupported opera")
	for at := len("TypeError: unsuppor"); at <= len(reason); at++ {
		for _, dots := range []string{"...", "…", " ..."} {
			cut := reason
			if at < len(reason) {
				cut = reason[:at] + dots
			}
			outputs := map[string]bool{named + cut: false, frame + "\n" + named + cut: true}
			if at > differs {
				outputs["E   "+other+"\n"+frame+"\n"+named+cut] = true
			}
			for output, whole := range outputs {
				c := Cure{Key: FaultIn(output, true).Key}
				if whole && c.Key != "test_cart.py::test_total | "+reason {
					t.Errorf("%q: got the key %q, want the whole reason", output, c.Key)
				}
				for _, said := range []string{output, frame, reason, "I get " + reason + " again", named + reason, named + cut, "E   " + cut, "Traceback (most recent call last):\n  File \"/b/cart.py\", line 2, in total\n" + reason} {
					if !slices.ContainsFunc(Keys(said), c.Ends) {
						t.Errorf("%q has the key %q, which %q does not find", output, c.Key, said)
					}
				}
				if at > differs && slices.ContainsFunc(Keys(named+other), c.Ends) {
					t.Errorf("%q has the key %q, which finds %q", output, c.Key, other)
				}
			}
		}
	}
}

func TestFaultIn_NoError(t *testing.T) {
	for _, text := range []string{"", "hi", "Error: (none)\nok", "0 errors, 2 warnings", "a.go:3: the total"} {
		if got := FaultIn(text, false); got != (Fault{}) {
			t.Errorf("FaultIn(%q) = %+v, want none", text, got)
		}
	}
}
