package inject

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

var (
	heredoc    = regexp.MustCompile(`(?s)<<-?\s*['"\\]?\w+.*`)
	assigned   = regexp.MustCompile(`(^|[;&|(]\s*)((?:(?:export|env)\s+)?(?:[A-Za-z_]\w*=(?:'[^']*'|"[^"]*"|[^\s'"]*)+\s*)+)`)
	secretFlag = regexp.MustCompile(`(?i)(--?[\w-]*(?:pass|token|secret|key|auth|cred)[\w-]*(?:=|\s+)|(?:^|\s)-(?:u|p|H)\s+|--(?:header|user)(?:=|\s+))('[^']*'|"[^"]*"|\S+)`)
	joinedFlag = regexp.MustCompile(`(\bmysql\w*\b.*?\s-p)[^\s-]\S*`)
	address    = regexp.MustCompile(`\b([a-z][a-z+]*://)(?:[^\s/@'"]*@)?([\w.-]+(?::\d+)?)[^\s'"]*`)
	bare       = regexp.MustCompile(`(^|[\s"'=(@,])(?:[^\s/@'"=(,]+@)?((?:(?:[\w-]+\.)+[A-Za-z]{2,}|\d{1,3}(?:\.\d{1,3}){3}|localhost)(?::\d+)?)[/?#][^\s'"]*`)
	mailbox    = regexp.MustCompile(`[\w.+-]+@[\w-]+(?:\.[\w-]+)+`)
	absolute   = regexp.MustCompile(`(^|[\s"'=:(])(~?(?:/[\w.@+-]+)+/?|[A-Za-z]:(?:\\[\w.@+-]+)+)`)
	leadingCD  = regexp.MustCompile(`^\s*cd\s+("[^"]*"|'[^']*'|\S+)\s*(?:&&|;)\s*`)
	redirected = regexp.MustCompile(`(?:^|[^\d&>-])>{1,2}\s*([\w./@+-]*[\w])`)
	teed       = regexp.MustCompile(`\|\s*tee\s+(?:-a\s+)?([\w./@+-]+)`)
	sedInPlace = regexp.MustCompile(`\bsed\s+-i\b.*?\s([\w./@+-]+\.\w+)\s*(?:$|[;&|])`)
)

// pathInProject returns a path within the project's directory, or "" for one outside of it.
func pathInProject(file, dir string) string {
	file = strings.ReplaceAll(file, `\`, "/")
	dir = strings.TrimRight(strings.ReplaceAll(dir, `\`, "/"), "/")
	if rest, ok := strings.CutPrefix(file, dir+"/"); ok && dir != "" {
		file = rest
	}
	file = path.Clean(file)
	if path.IsAbs(file) || strings.HasPrefix(file, "..") || strings.HasPrefix(file, "~") || len(file) > 1 && file[1] == ':' || file == "." {
		return ""
	}
	return graphiti.OneLine(file, commandLength)
}

// cleaned returns a command without the texts that a memory must not hold: here documents,
// assignments, secrets, and the texts that scrubbed removes.
func cleaned(command, dir string) string {
	s := heredoc.ReplaceAllString(command, "<<…")
	s = leadingCD.ReplaceAllString(s, "")
	s = assigned.ReplaceAllString(s, "$1")
	s = secretFlag.ReplaceAllString(s, "${1}…")
	s = joinedFlag.ReplaceAllString(s, "${1}…")
	return graphiti.OneLine(scrubbed(s, dir), commandLength)
}

// scrubbed returns a text without paths outside of the project, and without addresses.
func scrubbed(s, dir string) string {
	s = address.ReplaceAllString(s, "$1$2/…")
	s = bare.ReplaceAllString(s, "$1$2/…")
	s = mailbox.ReplaceAllString(s, "…")
	return absolute.ReplaceAllStringFunc(s, func(p string) string {
		before := ""
		if !strings.ContainsAny(p[:1], "/~") && (len(p) < 2 || p[1] != ':') {
			before, p = p[:1], p[1:]
		}
		if in := pathInProject(p, dir); in != "" {
			return before + in
		}
		if p == "/dev/null" {
			return before + p
		}
		return before + "…/" + path.Base(strings.ReplaceAll(p, `\`, "/"))
	})
}

// looks lists programs that only show or move files, and tell nothing about the project.
var looks = []string{"ls", "cat", "head", "tail", "grep", "rg", "find", "pwd", "echo", "which", "wc", "tree", "stat", "file", "less", "env", "date", "sed", "awk", "cd", "rm", "mkdir", "touch", "cp", "mv", "sleep"}

// isLook reports whether a command only shows files or the state of the repository.
func isLook(command string) bool {
	program, rest, _ := strings.Cut(command, " ")
	verb, _, _ := strings.Cut(rest, " ")
	return slices.Contains(looks, path.Base(program)) || program == "git" && slices.Contains([]string{"status", "diff", "log", "show", "branch"}, verb) || command == ""
}

// changedBy returns the files that a command writes itself.
func changedBy(command string) (files []string) {
	files = dialect.PatchedFiles(command)
	if i := strings.Index(command, "<<"); i >= 0 {
		command, _, _ = strings.Cut(command[:i]+" "+strings.TrimLeft(command[i:], "<"), "\n")
	}
	for _, r := range []*regexp.Regexp{redirected, teed, sedInPlace} {
		for _, m := range r.FindAllStringSubmatch(command, 8) {
			if !strings.HasPrefix(m[1], "/dev/") {
				files = append(files, m[1])
			}
		}
	}
	return files
}
