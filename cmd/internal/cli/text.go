package cli

import (
	"errors"
	"strings"

	"github.com/spf13/pflag"
)

// Text is the value of a flag that says something: an empty one, as of a variable
// that is not set, is refused and not taken for a flag that was not given.
func Text(s *string) pflag.Value { return (*text)(s) }

var errEmpty = errors.New("it is empty")

type text string

func (t *text) String() string { return string(*t) }
func (t *text) Type() string   { return "string" }

func (t *text) Set(s string) error {
	if strings.TrimSpace(s) == "" {
		return errEmpty
	}
	*t = text(s)
	return nil
}
