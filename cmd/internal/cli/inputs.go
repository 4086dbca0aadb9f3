package cli

import (
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

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
			c.Flags().IntVar(to, name, *to, help)
		case *[]string:
			c.Flags().StringSliceVar(to, name, *to, help)
		default:
			c.Flags().Var(Text(field.Addr().Convert(reflect.TypeFor[*string]()).Interface().(*string)), name, help)
		}
	}
}
