package cli

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/graphiti-proxy/graphiti-proxy/config"
)

// Complete makes a shell offer the values of a flag.
func Complete(c *cobra.Command, flag string, values ...string) {
	_ = c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)) // the flag exists
}

func completeSettings(_ *cobra.Command, _ []string, typed string) (offers []string, directive cobra.ShellCompDirective) {
	for _, s := range new(config.Config).Settings() {
		if strings.HasPrefix(s.Key, typed) {
			offers = append(offers, s.Key+"=")
		}
	}
	return offers, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// Refuse returns an error for an unknown command, with the most likely one.
func Refuse(c *cobra.Command, word string) error {
	path := strings.TrimPrefix(c.CommandPath()+" "+word, c.Root().Name()+" ")
	c.SuggestionsMinimumDistance = 2
	if suggested := c.SuggestionsFor(word); len(suggested) > 0 {
		return UsageError{fmt.Errorf("unknown command %q; did you mean %s?", path, strings.Join(suggested, " or "))}
	}
	return UsageError{fmt.Errorf("unknown command %q; see %s --help", path, c.CommandPath())}
}

// Text returns the value of a flag that must not be empty. It refuses an empty text, as
// from an unset variable, instead of ignoring the flag.
func Text(s *string) pflag.Value { return (*text)(s) }

type text string

func (t *text) String() string { return string(*t) }
func (t *text) Type() string   { return "string" }

func (t *text) Set(s string) error {
	if strings.TrimSpace(s) == "" {
		return errors.New("it is empty; give it a value, or leave it out")
	}
	*t = text(s)
	return nil
}

// count is the value of a flag for a number above 0: an input leaves 0 out.
type count int

func (n *count) String() string { return strconv.Itoa(int(*n)) }
func (n *count) Type() string   { return "int" }

func (n *count) Set(s string) error {
	v, err := strconv.Atoi(s)
	if *n = count(v); err != nil || v < 1 {
		return errors.New("it is not a number above 0")
	}
	return nil
}

// InputFlags adds a flag for each field of an operation's input with a help tag, except those
// named without. The flag tag, or else the field's JSON name, names the flag. The value of the
// field is the default.
func InputFlags(c *cobra.Command, in any, without ...string) {
	v := reflect.ValueOf(in).Elem()
	for f := range v.Type().Fields() {
		field, help := v.FieldByIndex(f.Index), f.Tag.Get("help")
		if f.Anonymous {
			InputFlags(c, field.Addr().Interface(), without...)
		}
		name, named := f.Tag.Lookup("flag")
		if !named {
			name, _, _ = strings.Cut(f.Tag.Get("json"), ",")
		}
		if help == "" || slices.Contains(without, name) {
			continue
		}
		switch to := field.Addr().Interface().(type) {
		case *bool:
			c.Flags().BoolVar(to, name, *to, help)
		case *int:
			c.Flags().Var((*count)(to), name, help)
		case *[]string:
			c.Flags().StringSliceVar(to, name, *to, help)
		default:
			c.Flags().Var(Text(field.Addr().Convert(reflect.TypeFor[*string]()).Interface().(*string)), name, help)
		}
	}
}
